-- Logins at servers: sealed with the key in the home, except for what is public.
CREATE TABLE mcp_login (
    server TEXT PRIMARY KEY,
    -- A login holds for this address only.
    url TEXT NOT NULL,
    -- What the authorization server knows the gateway as, and the tokens.
    client TEXT,
    tokens TEXT,
    -- When the access token has to be renewed, in ms.
    renew_at BIGINT,
    -- Metadata of the authorization server, and its address.
    metadata TEXT,
    authorization_server TEXT,
    -- Counts the changes, by which other gateways see that they have old tokens.
    version BIGINT NOT NULL DEFAULT 0,
    -- The one that renews the tokens, for so long: a token for renewal is often valid once.
    renewed_by TEXT,
    renewed_until BIGINT NOT NULL DEFAULT 0
);
