-- Where browsers get notices: an address at the push service of each, and the keys that seal them.
CREATE TABLE dashboard_push (
    id TEXT PRIMARY KEY,
    -- Goes with its login; null where nobody logs in.
    login TEXT,
    scope TEXT NOT NULL,
    endpoint TEXT NOT NULL UNIQUE,
    p256dh TEXT NOT NULL,
    auth TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
-- The key that push services know this gateway by: one row.
CREATE TABLE dashboard_push_key (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    private_key TEXT NOT NULL
);
-- What was told, so that it is told once.
CREATE TABLE dashboard_push_told (
    subject TEXT PRIMARY KEY,
    told_at BIGINT NOT NULL
);
CREATE INDEX dashboard_push_told_at ON dashboard_push_told (told_at);
