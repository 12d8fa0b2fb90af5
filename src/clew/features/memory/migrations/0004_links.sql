-- Direct messages of one person on several platforms, whose facts are those of the first.
CREATE TABLE memory_link (
    scope TEXT PRIMARY KEY,
    main TEXT NOT NULL,
    linked_at BIGINT NOT NULL,
    -- Set when the accounts were parted again: what is forgotten in the first one may still be told.
    ended_at BIGINT
);
CREATE INDEX memory_link_main ON memory_link (main);
CREATE TABLE memory_link_code (
    scope TEXT PRIMARY KEY,
    -- SHA-256 of the code.
    code TEXT NOT NULL,
    -- Wrong codes since it was given.
    tries BIGINT NOT NULL DEFAULT 0,
    expires_at BIGINT NOT NULL
);
