-- Logins of browsers: the digest of each cookie, whose it is, and until when.
CREATE TABLE dashboard_login (
    id TEXT PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    scope TEXT NOT NULL,
    -- What the browser says of itself.
    label TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX dashboard_login_expiry ON dashboard_login (expires_at);
-- Codes that let a browser log in once: a row goes when its code is used.
CREATE TABLE dashboard_code (
    digest TEXT PRIMARY KEY,
    scope TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
