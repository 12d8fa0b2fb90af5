-- Words and numbers are units of their own now ("iPhone15" is two): the index is made anew, unless
-- there is nothing in it yet.
UPDATE search_state SET is_broken = 1 WHERE EXISTS (SELECT 1 FROM entry);
