-- Strangers may have written a part of its task, or of what it watched when it was last told about.
ALTER TABLE schedule_job ADD COLUMN untrusted BIGINT NOT NULL DEFAULT 0;
