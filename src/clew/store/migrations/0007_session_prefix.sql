-- Definitions of tools as sessions send them. They are frozen when a session opens, so that its requests begin alike;
-- most sessions share a list.
CREATE TABLE toolset (
    -- SHA-256 of the definitions.
    digest      TEXT PRIMARY KEY,
    definitions TEXT NOT NULL,
    used_at     BIGINT NOT NULL
);
ALTER TABLE session ADD COLUMN tools TEXT REFERENCES toolset (digest);
CREATE INDEX session_tools ON session (tools);
