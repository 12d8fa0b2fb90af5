-- Nothing may change what was said; rows leave only with their whole conversation.
CREATE FUNCTION entry_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND EXISTS (
        SELECT 1 FROM conversation WHERE id = OLD.conversation_id AND deleting_at IS NOT NULL
    ) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
        CONSTRAINT = CASE TG_OP WHEN 'DELETE' THEN 'entry_stays' ELSE 'entry_never_changes' END,
        MESSAGE = 'what was said is never changed';
END
$$;

CREATE TRIGGER entry_kept BEFORE UPDATE OR DELETE ON entry
FOR EACH ROW EXECUTE FUNCTION entry_is_kept();
