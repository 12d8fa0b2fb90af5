-- Columns of features that name a chat: its route, or its scope. They change when its id does.
ALTER TABLE feature_table ADD COLUMN route_column TEXT;
ALTER TABLE feature_table ADD COLUMN scope_column TEXT;
-- Open questions are looked for by the chat in which they were asked.
CREATE INDEX approval_open_route ON approval (route) WHERE state = 'open';
