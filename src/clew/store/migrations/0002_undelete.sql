-- A deletion can be undone for a while: until when, and what was taken away at once.
ALTER TABLE conversation ADD COLUMN undo_until BIGINT;
ALTER TABLE conversation ADD COLUMN undo TEXT;
CREATE INDEX conversation_deleting ON conversation (deleting_at) WHERE deleting_at IS NOT NULL;
