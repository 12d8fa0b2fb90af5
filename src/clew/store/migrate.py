"""
Migrations: numbered files, applied once, in order, under a lock.

``migrations/NNNN_name.sql`` holds for both databases, ``NNNN_name.sqlite.sql`` and
``NNNN_name.postgres.sql`` what differs; both parts of one number are applied together. All that is
missing is applied in one transaction: a process that dies in the middle leaves the store as it was.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Literal, LiteralString, cast

from clew.errors import StoreUnusable

if TYPE_CHECKING:
    from collections.abc import Collection

    from clew.store.contract import Tx

Dialect = Literal["sqlite", "postgres"]

_TABLES: dict[Dialect, LiteralString] = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    "postgres": "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()",
}
# SQLite has one writer; on PostgreSQL two processes that start at once would both create tables.
_LOCK: dict[Dialect, LiteralString | None] = {
    "sqlite": None,
    "postgres": "SELECT pg_advisory_xact_lock(7163383)",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Migration:
    number: int
    name: str
    sql: LiteralString

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def migrations(dialect: Dialect) -> list[Migration]:
    """All that this version of Clew knows, in order."""
    parts: dict[str, list[str]] = {}
    folder = resources.files("clew.store").joinpath("migrations")
    for file in sorted(folder.iterdir(), key=lambda file: file.name.count(".")):
        name, _, ending = file.name.partition(".")
        if ending in ("sql", f"{dialect}.sql"):
            parts.setdefault(name, []).append(file.read_text(encoding="utf-8"))
    return [
        Migration(
            number=int(name[:4]), name=name[5:], sql=cast("LiteralString", "\n".join(parts[name]))
        )
        for name in sorted(parts)
    ]


def migrate(t: Tx, dialect: Dialect, *, only: Collection[int] | None = None) -> list[str]:
    """
    Bring the schema up to date, or to these numbers; the names of what was applied.

    :raises StoreUnusable: if the store was written by a newer Clew or by another program; nothing
        was changed
    """
    if lock := _LOCK[dialect]:
        t.all(lock)
    known = migrations(dialect)
    done = applied(t, dialect)
    if done is None:
        _begin(t)
        done = {}
    _refuse_foreign(known, done)
    due = [migration for migration in known if migration.number not in done]
    if only is not None:
        due = [migration for migration in due if migration.number in only]
    for migration in due:
        _apply(t, migration)
    return [migration.name for migration in due]


def missing(t: Tx, dialect: Dialect) -> list[str]:
    """
    The names of what ``migrate`` would apply; writes nothing.

    :raises StoreUnusable: as ``migrate``
    """
    known = migrations(dialect)
    done = applied(t, dialect) or {}
    _refuse_foreign(known, done)
    return [migration.name for migration in known if migration.number not in done]


def applied(t: Tx, dialect: Dialect) -> dict[int, str] | None:
    """
    The hash of each migration that was applied, by number; ``None`` in an empty database.

    :raises StoreUnusable: if the database belongs to another program
    """
    tables = {row[0] for row in t.all(_TABLES[dialect])}
    if "migration" in tables:
        return dict(t.all("SELECT number, sha256 FROM migration"))  # pyright: ignore[reportArgumentType]
    if tables:
        raise StoreUnusable(
            f"the database belongs to another program (it has a table {min(tables)!r}): "
            "give Clew a database of its own with store.url; nothing was changed"
        )
    return None


def _begin(t: Tx) -> None:
    t.run(
        """
        CREATE TABLE migration (
            number BIGINT PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL,
                applied_at BIGINT NOT NULL
        )
        """
    )


def _refuse_foreign(known: list[Migration], applied: dict[int, str]) -> None:
    newest = max(applied, default=0)
    if newest > known[-1].number:
        raise StoreUnusable(
            f"the store was written by a newer Clew (schema {newest}, this one knows "
            f"{known[-1].number}): upgrade Clew, or point store.url at "
            "another store; nothing was changed"
        )
    for migration in known:
        if applied.get(migration.number, migration.sha256) != migration.sha256:
            raise StoreUnusable(
                f"the store's schema {migration.number} ({migration.name}) is not the one of this "
                "Clew: use the version that made it, or restore a backup; nothing was changed"
            )


def _apply(t: Tx, migration: Migration) -> None:
    t.run(migration.sql)
    t.run(
        "INSERT INTO migration (number, name, sha256, applied_at) VALUES ($1, $2, $3, $4)",
        migration.number,
        migration.name,
        migration.sha256,
        t.now,
    )
