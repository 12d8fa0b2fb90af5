-- Tools of MCP servers as they were listed last, so that they can be found without a connection.
CREATE TABLE mcp_tool (
    server TEXT NOT NULL,
    name TEXT NOT NULL,
    -- What the server says of it, as JSON.
    definition TEXT NOT NULL,
    -- SHA-256 of the definition.
    digest TEXT NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (server, name)
);
