-- What the gateway last wrote into the file of a scope.
CREATE TABLE memory_file (
    scope TEXT PRIMARY KEY,
    -- Of the scope.
    version BIGINT NOT NULL,
    -- SHA-256 of the file, and its time of change in ns.
    digest TEXT NOT NULL,
    mtime BIGINT NOT NULL,
    -- JSON: by the id of a fact, SHA-256 of its text and its version.
    facts TEXT NOT NULL
);
