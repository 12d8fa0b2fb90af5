-- The message holds text that its writer did not write, or its writer is a guest.
ALTER TABLE inbox ADD COLUMN untrusted BIGINT NOT NULL DEFAULT 0;
CREATE INDEX inbox_foreign ON inbox (conversation_id) WHERE untrusted = 1;

-- Writes of tool calls to a workspace. They outlive their conversation: the files do as well.
CREATE TABLE workspace_write (
    -- Turn, step and id of the call.
    call       TEXT NOT NULL,
    turn       TEXT NOT NULL,
    workspace  TEXT NOT NULL,
    -- Absolute; empty for a command, which may write anywhere in the workspace.
    path       TEXT NOT NULL,
    -- By the clock of the gateway's machine, as the times of files are.
    began_at   BIGINT NOT NULL,
    -- NULL while it may still write: no longer than its turn.
    ended_at   BIGINT,
    -- What it wrote may repeat text of strangers.
    untrusted  BIGINT NOT NULL,
    -- No person was shown what it would write.
    unseen     BIGINT NOT NULL,
    PRIMARY KEY (call, path)
);
CREATE INDEX workspace_write_place ON workspace_write (workspace);
