-- Why each call ran or did not, and what people have allowed for longer than one call.
ALTER TABLE journal ADD COLUMN reason TEXT;
ALTER TABLE journal ADD COLUMN grant_id TEXT;
-- Its result holds text that strangers may have written.
ALTER TABLE journal ADD COLUMN untrusted BIGINT NOT NULL DEFAULT 0;
CREATE INDEX journal_untrusted ON journal (conversation_id) WHERE untrusted = 1;

-- Why it is asked.
ALTER TABLE approval ADD COLUMN why TEXT;
-- The pattern (JSON) that may be allowed for longer.
ALTER TABLE approval ADD COLUMN offer TEXT;
-- Shown with the question, such as the diff of a write.
ALTER TABLE approval ADD COLUMN preview TEXT;
ALTER TABLE approval ADD COLUMN untrusted BIGINT NOT NULL DEFAULT 0;

-- GRANT is a word of SQL.
CREATE TABLE approval_grant (
    id              TEXT PRIMARY KEY,
    scope           TEXT NOT NULL,
    -- Only there, or in all of the scope.
    conversation_id TEXT REFERENCES conversation (id),
    tool            TEXT NOT NULL,
    pattern         TEXT NOT NULL,
    -- The pattern as it was shown.
    says            TEXT NOT NULL,
    by              TEXT NOT NULL,
    from_approval   TEXT,
    created_at      BIGINT NOT NULL,
    expires_at      BIGINT,
    uses_left       BIGINT,
    revoked_at      BIGINT
);
CREATE INDEX approval_grant_scope ON approval_grant (scope, tool) WHERE revoked_at IS NULL;
CREATE INDEX approval_grant_conversation ON approval_grant (conversation_id)
    WHERE conversation_id IS NOT NULL;
