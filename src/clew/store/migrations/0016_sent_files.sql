-- The turn whose answer an attachment is sent with, its place among them, and its caption.
ALTER TABLE attachment ADD COLUMN turn_id TEXT;
ALTER TABLE attachment ADD COLUMN position BIGINT;
ALTER TABLE attachment ADD COLUMN caption TEXT;
CREATE INDEX attachment_turn ON attachment (turn_id) WHERE turn_id IS NOT NULL;
