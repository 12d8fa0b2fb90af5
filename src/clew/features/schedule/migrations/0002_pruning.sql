-- Old fires are looked for by when they were stored.
CREATE INDEX schedule_fire_at ON schedule_fire (at);
