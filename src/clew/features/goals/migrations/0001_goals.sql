-- Goals of conversations, and a row for each round towards one.
CREATE TABLE goals (
    id TEXT PRIMARY KEY,
    conversation TEXT NOT NULL,
    text TEXT NOT NULL,
    -- active, paused, done, stopped; why, as a code, and in words of a model or of an error.
    state TEXT NOT NULL,
    reason TEXT,
    remark TEXT,
    -- Accepted so far, and how many may be.
    rounds BIGINT NOT NULL DEFAULT 0,
    max_rounds BIGINT NOT NULL,
    -- Used so far, and after how many no round begins.
    tokens BIGINT NOT NULL DEFAULT 0,
    budget BIGINT NOT NULL,
    -- Rounds that failed, in a row.
    failures BIGINT NOT NULL DEFAULT 0,
    -- Where its rounds are answered; NULL: they are read in the conversation.
    route TEXT,
    -- JSON: who set it, as in the payload of an input.
    payload TEXT NOT NULL,
    -- 0 while people are still to be told of its state.
    told BIGINT NOT NULL DEFAULT 1,
    created_at BIGINT NOT NULL,
    -- When a person set or resumed it last.
    resumed_at BIGINT NOT NULL,
    -- Changes of this row.
    version BIGINT NOT NULL DEFAULT 1
);
-- A conversation has one goal at a time.
CREATE UNIQUE INDEX goals_current ON goals (conversation) WHERE state IN ('active', 'paused');
CREATE INDEX goals_conversation ON goals (conversation, created_at);
CREATE INDEX goals_due ON goals (id) WHERE state = 'active' OR told = 0;
CREATE TABLE goals_round (
    goal TEXT NOT NULL,
    n BIGINT NOT NULL,
    conversation TEXT NOT NULL,
    input TEXT NOT NULL,
    -- started, done, failed, stopped, interrupted, held.
    state TEXT NOT NULL,
    reason TEXT,
    turn TEXT,
    tokens BIGINT NOT NULL DEFAULT 0,
    -- What the judge says: reached, open; NULL: it was not asked.
    verdict TEXT,
    remark TEXT,
    -- The process that asks the judge.
    owner TEXT,
    at BIGINT NOT NULL,
    ended_at BIGINT,
    PRIMARY KEY (goal, n)
);
CREATE INDEX goals_round_started ON goals_round (goal) WHERE state = 'started';
CREATE INDEX goals_round_conversation ON goals_round (conversation);
