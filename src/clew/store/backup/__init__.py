"""
Backups: one file with a whole store, of either database, restorable into either.

The file is an SQLite database with the tables of a store, verified before it replaces an
older one. Nothing here is part of a running gateway: each function runs in one thread of a
separate program, while others may use the store.
"""

from __future__ import annotations
