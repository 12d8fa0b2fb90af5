-- The file or the URL that a job watches, and its text when it was last told about.
ALTER TABLE schedule_job ADD COLUMN watch TEXT;
ALTER TABLE schedule_job ADD COLUMN seen TEXT;
