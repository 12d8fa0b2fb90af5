-- Conversations in which an agent works for another, and what becomes of their answers.
CREATE TABLE delegation_child (
    conversation_id TEXT PRIMARY KEY,
    -- Where its answer goes: the call that asked, and the session that was open then.
    parent_conversation TEXT NOT NULL,
    parent_session TEXT NOT NULL,
    parent_turn TEXT NOT NULL,
    parent_step BIGINT NOT NULL,
    parent_call TEXT NOT NULL,
    -- The conversation at the top of its tree, and how far below it this one is.
    root TEXT NOT NULL,
    depth BIGINT NOT NULL,
    -- Where its questions are asked.
    route TEXT,
    -- The kind of agent; empty for the usual one.
    agent TEXT NOT NULL,
    -- As people know it.
    title TEXT NOT NULL,
    max_tokens BIGINT NOT NULL,
    max_steps BIGINT NOT NULL,
    -- The turn's step at which it was told that these are used.
    warned_at BIGINT,
    -- 1 if nobody waits for the answer in the call.
    background BIGINT NOT NULL,
    -- running, done, failed, stopped, with the reason.
    state TEXT NOT NULL,
    reason TEXT,
    -- How often it was asked for an answer.
    round BIGINT NOT NULL,
    -- The turn whose answer it is, and the input that tells the parent of it.
    turn TEXT,
    woken TEXT,
    created_at BIGINT NOT NULL,
    ended_at BIGINT,
    UNIQUE (parent_turn, parent_step, parent_call)
);
CREATE INDEX delegation_child_parent ON delegation_child (parent_conversation);
CREATE INDEX delegation_child_running ON delegation_child (root) WHERE state = 'running';
-- One row for each tree: who opens a child holds it until the commit, and counts alone.
CREATE TABLE delegation_tree (
    root TEXT PRIMARY KEY,
    opened_at BIGINT NOT NULL
);
