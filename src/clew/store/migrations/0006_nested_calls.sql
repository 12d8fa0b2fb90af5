-- A tool may call others. While one of these waits for approval, the outer call is suspended; it then
-- runs again from the top, and the calls inside of it are recognised by what the model wrote.
ALTER TABLE journal ADD COLUMN requested TEXT;
ALTER TABLE journal ADD COLUMN suspended BIGINT NOT NULL DEFAULT 0;
ALTER TABLE approval ADD COLUMN requested TEXT;
