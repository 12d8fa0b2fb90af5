-- The instructions of a session become a list of parts: sent as one text, several parts would change the prefix.
UPDATE session SET instructions = json_build_array(json_build_object('name', 'agent', 'text', instructions, 'dynamic', false))::text
WHERE instructions IS NOT NULL;
