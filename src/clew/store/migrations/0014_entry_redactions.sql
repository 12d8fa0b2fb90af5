-- What contexts have in the place of entries with a text that was forgotten; the log stays as it is.
CREATE TABLE entry_redaction (
    conversation_id TEXT NOT NULL,
    seq             BIGINT NOT NULL,
    message         TEXT NOT NULL,
    text            TEXT NOT NULL,
    PRIMARY KEY (conversation_id, seq)
);
