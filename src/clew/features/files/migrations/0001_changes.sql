-- One row for each call that changes a file, stored before the file is written. The contents are
-- attachments of the conversation.
CREATE TABLE files_change (
    n @ID,
    turn TEXT NOT NULL,
    step BIGINT NOT NULL,
    call TEXT NOT NULL,
    conversation TEXT NOT NULL,
    -- The folder, and the path relative to it.
    workspace TEXT NOT NULL,
    path TEXT NOT NULL,
    -- SHA-256 of the content; NULL where there was no file.
    before_sha256 TEXT,
    after_sha256 TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    -- When it was undone, or found to be changed by something else.
    settled_at BIGINT,
    UNIQUE (turn, step, call)
);
CREATE INDEX files_change_conversation ON files_change (conversation, n);
