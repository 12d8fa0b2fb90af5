"""
Backups: one file that holds a whole store, of either database, and can be restored into either.

The file is an SQLite database with the tables of a store, verified before it takes the place of an
older one. Nothing here is part of a running gateway: each function is a program that does one thing
in one thread, beside whoever uses the store.
"""

from __future__ import annotations
