"""SQLite store, for one host: any number of processes may share the file."""

from __future__ import annotations

from clew.store.sqlite.filesystems import detect_filesystem
from clew.store.sqlite.store import SqliteStore, open_sqlite

__all__ = ["SqliteStore", "detect_filesystem", "open_sqlite"]
