"""SQL layer of Clew: one contract, implemented on SQLite and PostgreSQL."""
