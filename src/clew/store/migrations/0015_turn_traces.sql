-- The trace of a turn where turns are traced: 32 hex digits, the same over all its runs.
ALTER TABLE turn ADD COLUMN trace_id TEXT;
