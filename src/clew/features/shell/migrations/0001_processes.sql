-- Commands that run under a supervisor, and what became of them.
CREATE TABLE shell_process (
    -- From the key of the tool call: asked for twice, started once.
    id TEXT PRIMARY KEY,
    conversation TEXT NOT NULL,
    turn TEXT NOT NULL,
    scope TEXT NOT NULL,
    -- As the model wrote it.
    command TEXT NOT NULL,
    workspace TEXT NOT NULL,
    level TEXT NOT NULL,
    -- The machine whose CLEW_HOME has its folder.
    host TEXT NOT NULL,
    -- asked, running, exited, stopped, lost.
    state TEXT NOT NULL,
    -- 1: the model is told its end; 0: a call of its turn waits for it.
    background BIGINT NOT NULL,
    -- Why somebody asked it to end.
    stop_reason TEXT,
    exit_code BIGINT,
    signal BIGINT,
    -- Why it ended, if it did not by itself; a remark on the workspace.
    why TEXT,
    notice TEXT,
    -- Bytes of its output, and the last characters.
    size BIGINT,
    tail TEXT,
    -- The input by which the model is told.
    woken TEXT,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    -- When its output was removed.
    pruned_at BIGINT
);
CREATE INDEX shell_process_state ON shell_process (state);
CREATE INDEX shell_process_conversation ON shell_process (conversation);
