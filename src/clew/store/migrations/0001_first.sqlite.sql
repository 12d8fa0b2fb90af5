-- Nothing may change what was said; rows leave only with their whole conversation.
CREATE TRIGGER entry_never_changes BEFORE UPDATE ON entry
BEGIN
    SELECT RAISE(ABORT, 'entry_never_changes');
END;

CREATE TRIGGER entry_stays BEFORE DELETE ON entry
WHEN NOT EXISTS (SELECT 1 FROM conversation WHERE id = OLD.conversation_id AND deleting_at IS NOT NULL)
BEGIN
    SELECT RAISE(ABORT, 'entry_stays');
END;
