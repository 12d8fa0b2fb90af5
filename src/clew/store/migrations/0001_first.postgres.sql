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

-- Which tokens the text of each message has, as their hashes. Without a list of pending changes, which
-- every search would have to read.
CREATE TABLE search_index (n BIGINT PRIMARY KEY, tokens INTEGER[] NOT NULL);
CREATE INDEX search_tokens ON search_index USING gin (tokens) WITH (fastupdate = off);

-- The messages that are not in the index yet. A row each, since transactions become visible in another
-- order than that of their n: a mark "up to here" would pass over those that commit late.
CREATE TABLE search_todo (n BIGINT PRIMARY KEY);

CREATE FUNCTION search_later() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO search_todo (n) VALUES (NEW.n);
    RETURN NULL;
END
$$;

CREATE TRIGGER entry_search AFTER INSERT ON entry
FOR EACH ROW WHEN (NEW.kind = 'message') EXECUTE FUNCTION search_later();
