"""The only place that knows SQL: one contract, SQLite and PostgreSQL."""
