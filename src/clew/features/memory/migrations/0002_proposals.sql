-- When something was last forgotten in a scope: what was said before is not read for facts.
ALTER TABLE memory_scope ADD COLUMN forgotten_at BIGINT NOT NULL DEFAULT 0;
-- How far a conversation has been read for facts.
CREATE TABLE memory_extraction (
    conversation TEXT PRIMARY KEY,
    -- The last entry that was read.
    seq BIGINT NOT NULL,
    -- The process that asks the model about the entries after it.
    owner TEXT,
    -- In a row; the next one is not before.
    failures BIGINT NOT NULL DEFAULT 0,
    due_at BIGINT NOT NULL DEFAULT 0
);
-- SHA-256 of each prompt that was sent to find facts, stored before that.
CREATE TABLE memory_prompt (
    conversation TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (conversation, hash)
);
-- Facts that a model would keep, until a person has answered.
CREATE TABLE memory_proposal (
    id TEXT PRIMARY KEY,
    scope TEXT NOT NULL,
    -- As people name it; never given twice in a scope.
    number BIGINT NOT NULL,
    kind TEXT NOT NULL,
    -- NULL once it is answered.
    text TEXT,
    text_key TEXT,
    -- proposed, accepted, declined.
    state TEXT NOT NULL,
    -- 1 once a person was told.
    told BIGINT NOT NULL DEFAULT 0,
    -- The number of the fact that it would replace.
    replaces BIGINT,
    conversation TEXT NOT NULL,
    seq BIGINT,
    source_hash TEXT,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX memory_proposal_number ON memory_proposal (scope, number);
CREATE INDEX memory_proposal_conversation ON memory_proposal (conversation);
