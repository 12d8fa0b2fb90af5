-- The machine and home whose files were written: only there can it be seen whether they still exist.
ALTER TABLE workspace_write ADD COLUMN place TEXT NOT NULL DEFAULT '';
CREATE INDEX workspace_write_path ON workspace_write (workspace, path, began_at);
-- What maintenance looks through.
CREATE INDEX workspace_write_seen ON workspace_write (place, workspace, began_at);
