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

-- Which tokens the text of each message has: rowid is entry.n, the text stays in entry. A deleted row is
-- taken out at once, not left behind a mark until some later merge.
CREATE VIRTUAL TABLE search_index
    USING fts5(tokens, content = '', columnsize = 0, detail = none, tokenize = 'ascii');
INSERT INTO search_index (search_index, rank) VALUES ('secure-delete', 1);
