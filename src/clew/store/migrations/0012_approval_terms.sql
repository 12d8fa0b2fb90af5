-- What a call would reach when it was asked about: sandbox level, workspace, facts (JSON).
ALTER TABLE approval ADD COLUMN terms TEXT;
