-- Inputs with text of strangers, such as a page that a job watches, taint their conversation.
CREATE INDEX inbox_untrusted ON inbox (conversation_id)
    WHERE kind = 'completion' AND payload LIKE '%"untrusted": true%';
