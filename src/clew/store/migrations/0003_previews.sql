-- The message in which an answer is shown while it is made is remembered before it is sent: whoever
-- goes on after a crash can ask the platform for it, or say that it may be there.
CREATE TABLE preview_kept (
    route       TEXT PRIMARY KEY,
    turn_id     TEXT NOT NULL,
    -- What it was sent with.
    key         TEXT NOT NULL,
    -- Not known before the platform has confirmed it.
    platform_id TEXT,
    shown_at    BIGINT NOT NULL
);
INSERT INTO preview_kept (route, turn_id, key, platform_id, shown_at)
SELECT route, turn_id, '', platform_id, shown_at FROM preview;
DROP TABLE preview;
ALTER TABLE preview_kept RENAME TO preview;
