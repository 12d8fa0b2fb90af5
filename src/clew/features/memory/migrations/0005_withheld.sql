-- Texts that were forgotten, by digests of their words: what the log has of them is not recalled.
CREATE TABLE memory_withheld (
    -- Whose messages are looked at; 'shared' for those of all.
    scope TEXT NOT NULL,
    -- How many words it has, and the SHA-256 of them.
    words BIGINT NOT NULL,
    hash TEXT NOT NULL,
    -- What was said later is said again.
    forgotten_at BIGINT NOT NULL,
    PRIMARY KEY (scope, words, hash)
);
