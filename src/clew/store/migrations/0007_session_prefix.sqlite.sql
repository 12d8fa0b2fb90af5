-- The instructions of a session become a list of parts: sent as one text, several parts would change the prefix.
UPDATE session SET instructions = json_array(json_object('name', 'agent', 'text', instructions, 'dynamic', json('false')))
WHERE instructions IS NOT NULL;
