"""The store on SQLite, for one host: any number of processes may share the file."""

from __future__ import annotations

from clew.store.sqlite.filesystems import filesystem_of
from clew.store.sqlite.store import SqliteStore, open_sqlite

__all__ = ["SqliteStore", "filesystem_of", "open_sqlite"]
