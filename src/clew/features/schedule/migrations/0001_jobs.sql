-- Jobs, and a row for each slot of them that has come.
CREATE TABLE schedule_job (
    id TEXT PRIMARY KEY,
    -- As people know it.
    title TEXT NOT NULL,
    scope TEXT NOT NULL,
    -- Where it reports to; NULL: nowhere, its conversation can be read.
    route TEXT,
    -- fresh, own, here.
    place TEXT NOT NULL,
    -- Of own and here.
    conversation TEXT,
    -- turn, message, command.
    kind TEXT NOT NULL,
    task TEXT NOT NULL,
    command TEXT,
    -- at, every, cron; periods are counted from the anchor.
    rule TEXT NOT NULL,
    expression TEXT NOT NULL,
    zone TEXT NOT NULL,
    anchor BIGINT NOT NULL,
    -- latest, none, all.
    catch_up TEXT NOT NULL,
    -- hold, skip, ignore.
    quiet TEXT NOT NULL,
    -- An answer that is not reported.
    quiet_if TEXT,
    -- JSON: who created it, as in the payload of an input.
    payload TEXT NOT NULL,
    -- on, paused, done, with the reason.
    state TEXT NOT NULL,
    reason TEXT,
    until_at BIGINT,
    max_runs BIGINT,
    -- Failures in a row, and when people were told of them.
    failures BIGINT NOT NULL DEFAULT 0,
    told_at BIGINT,
    -- Digest of the last output of a command.
    output TEXT,
    -- The next slot, and when it is looked at: later in quiet hours.
    next_slot BIGINT,
    due_at BIGINT,
    -- When somebody asked for a run out of turn.
    asked_at BIGINT,
    created_at BIGINT NOT NULL
);
CREATE INDEX schedule_job_due ON schedule_job (due_at) WHERE state = 'on';
CREATE INDEX schedule_job_asked ON schedule_job (asked_at) WHERE asked_at IS NOT NULL;
CREATE INDEX schedule_job_conversation ON schedule_job (conversation);
CREATE TABLE schedule_fire (
    job TEXT NOT NULL,
    slot BIGINT NOT NULL,
    -- started, done, failed, skipped, missed.
    state TEXT NOT NULL,
    reason TEXT,
    conversation TEXT,
    input TEXT,
    turn TEXT,
    -- The process that runs its command.
    owner TEXT,
    at BIGINT NOT NULL,
    ended_at BIGINT,
    PRIMARY KEY (job, slot)
);
CREATE INDEX schedule_fire_started ON schedule_fire (job) WHERE state = 'started';
CREATE INDEX schedule_fire_conversation ON schedule_fire (conversation);
