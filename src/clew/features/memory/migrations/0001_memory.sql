-- Facts that are remembered, a row for each change of them, and what each session was told.
CREATE TABLE memory_scope (
    scope TEXT PRIMARY KEY,
    -- Changes so far: a change takes the next number while it holds this row, so that numbers
    -- are committed in their order.
    version BIGINT NOT NULL,
    -- The highest number of a fact.
    last_number BIGINT NOT NULL
);
CREATE TABLE memory_fact (
    id TEXT PRIMARY KEY,
    scope TEXT NOT NULL,
    -- As people name it; never given twice in a scope.
    number BIGINT NOT NULL,
    -- profile, preference, fact, plan.
    kind TEXT NOT NULL,
    -- NULL once it is forgotten.
    text TEXT,
    -- SHA-256 of the text without case and the like, by which it is known already.
    text_key TEXT,
    -- active, replaced, forgotten.
    state TEXT NOT NULL,
    pinned BIGINT NOT NULL DEFAULT 0,
    -- Of the scope, at its last change.
    version BIGINT NOT NULL,
    -- person, agent, import.
    written_by TEXT NOT NULL,
    -- The entry that it was taken from, and the SHA-256 of that entry's text.
    conversation TEXT,
    seq BIGINT,
    source_hash TEXT,
    -- The fact in whose place it is.
    replaces TEXT,
    created_at BIGINT NOT NULL,
    -- How often it was recalled, and when last.
    uses BIGINT NOT NULL DEFAULT 0,
    used_at BIGINT
);
CREATE UNIQUE INDEX memory_fact_number ON memory_fact (scope, number);
CREATE INDEX memory_fact_text ON memory_fact (scope, text_key);
CREATE INDEX memory_fact_version ON memory_fact (scope, version);
CREATE INDEX memory_fact_source ON memory_fact (conversation, seq);
CREATE TABLE memory_change (
    scope TEXT NOT NULL,
    version BIGINT NOT NULL,
    fact TEXT NOT NULL,
    -- added, edited, replaced, forgotten, pinned, unpinned.
    change TEXT NOT NULL,
    written_by TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (scope, version)
);
CREATE INDEX memory_change_fact ON memory_change (fact);
-- The version of a scope that a session's instructions and notes have told.
CREATE TABLE memory_mark (
    session TEXT NOT NULL,
    scope TEXT NOT NULL,
    conversation TEXT NOT NULL,
    version BIGINT NOT NULL,
    PRIMARY KEY (session, scope)
);
CREATE INDEX memory_mark_conversation ON memory_mark (conversation);
