-- The tables that features bring along, and the statements that made them, for both databases: a
-- store can be copied, deleted from and checked where the package of a feature is not installed.
CREATE TABLE feature_migration (
    feature    TEXT NOT NULL,
    number     BIGINT NOT NULL,
    name       TEXT NOT NULL,
    sqlite     TEXT NOT NULL,
    postgres   TEXT NOT NULL,
    sha256     TEXT NOT NULL,
    applied_at BIGINT NOT NULL,
    PRIMARY KEY (feature, number)
);
CREATE TABLE feature_table (
    name                TEXT PRIMARY KEY,
    feature             TEXT NOT NULL,
    -- Separated by commas.
    key_columns         TEXT NOT NULL,
    -- Rows with a conversation's id in it are deleted with the conversation.
    conversation_column TEXT
);
