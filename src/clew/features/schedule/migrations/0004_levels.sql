-- The sandbox level at which a person or a rule allowed the command.
ALTER TABLE schedule_job ADD COLUMN level TEXT;
