-- Skills that were seen, what a person trusts of each, and those that conversations have loaded.
CREATE TABLE skills_skill (
    -- The folder of skills: home, plugin NAME, workspace PATH.
    source TEXT NOT NULL,
    name TEXT NOT NULL,
    -- SHA-256 over all files, as a person trusts them; NULL: nobody does.
    digest TEXT,
    -- Who decided, and when.
    decided_by TEXT,
    decided_at BIGINT,
    -- SKILL.md as it is trusted, and the digest of each file, as JSON: what a change is compared with.
    text TEXT,
    files TEXT,
    -- The digest that a session has found last, and whether people were told that it is not trusted.
    seen TEXT,
    told BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (source, name)
);
CREATE TABLE skills_loaded (
    conversation TEXT NOT NULL,
    name TEXT NOT NULL,
    source TEXT NOT NULL,
    digest TEXT NOT NULL,
    -- The tools that it lists, as JSON; NULL if it lists none.
    tools TEXT,
    at BIGINT NOT NULL,
    PRIMARY KEY (conversation, name)
);
