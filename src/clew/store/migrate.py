"""
Migrations: numbered files, applied once, in order, under a lock.

``migrations/NNNN_name.sql`` applies to both databases, ``NNNN_name.sqlite.sql`` and
``NNNN_name.postgres.sql`` to one; the parts of one number are applied together. All pending
migrations are applied in one transaction: if the process dies midway, the store is
unchanged.
"""

from __future__ import annotations

import hashlib
from importlib import resources
from typing import TYPE_CHECKING, LiteralString, cast

from clew.distribution import VERSION
from clew.errors import StoreUnusable
from clew.record import Record
from clew.store.feature_migrations import migrate_features

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from clew.store.contract import Dialect, Tx
    from clew.store.feature_schema import FeatureSchema

_TABLES: dict[Dialect, LiteralString] = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    "postgres": "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()",
}
# SQLite has one writer; on PostgreSQL two processes that start at once would both create tables.
_LOCK: dict[Dialect, LiteralString | None] = {
    "sqlite": None,
    "postgres": "SELECT pg_advisory_xact_lock(7163383)",
}


class Migration(Record):
    number: int
    name: str
    sql: LiteralString

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def load_migrations(dialect: Dialect) -> list[Migration]:
    """Return all migrations of this version of Clew, in order."""
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


def migrate_schema(
    t: Tx, *, only: Collection[int] | None = None, features: Sequence[FeatureSchema] = ()
) -> list[str]:
    """
    Apply the pending migrations, or ``only`` these numbers; return their names.

    Those of ``features`` come after those of the core.

    :raises StoreUnusable: if a newer Clew or another program wrote the store; nothing was
        changed
    """
    if lock := _LOCK[t.dialect]:
        t.fetch_all(lock)
    known = load_migrations(t.dialect)
    done = read_applied_migrations(t)
    if done is None:
        _create_migration_table(t)
        done = {}
    _reject_incompatible(known, done)
    due = [migration for migration in known if migration.number not in done]
    if only is not None:
        due = [migration for migration in due if migration.number in only]
    for migration in due:
        _apply_migration(t, migration)
    return [migration.name for migration in due] + migrate_features(t, features)


def find_pending_migrations(t: Tx) -> list[str]:
    """
    Return the names of what ``migrate_schema`` would apply; writes nothing.

    :raises StoreUnusable: as ``migrate_schema``
    """
    known = load_migrations(t.dialect)
    done = read_applied_migrations(t) or {}
    _reject_incompatible(known, done)
    return [migration.name for migration in known if migration.number not in done]


def read_applied_migrations(t: Tx) -> dict[int, str] | None:
    """
    Return the hash of each applied migration by number; ``None`` in an empty database.

    :raises StoreUnusable: if the database belongs to another program
    """
    tables = t.fetch_column(_TABLES[t.dialect])
    if "migration" in tables:
        return t.fetch_map("SELECT number, sha256 FROM migration")
    if tables:
        raise StoreUnusable(
            f"the database belongs to another program (it has a table {min(tables)!r}): "
            "give Clew a database of its own with store.url; nothing was changed"
        )
    return None


def _create_migration_table(t: Tx) -> None:
    t.execute(
        """
        CREATE TABLE migration (
            number BIGINT PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL,
                applied_at BIGINT NOT NULL
        )
        """
    )


def _reject_incompatible(known: list[Migration], applied: dict[int, str]) -> None:
    newest = max(applied, default=0)
    if newest > known[-1].number:
        raise StoreUnusable(
            f"the store was written by a newer Clew (schema {newest}; this is Clew {VERSION}, "
            f"which knows schema {known[-1].number}): upgrade Clew, restore a backup of this "
            "version, or point store.url at another store; nothing was changed"
        )
    for migration in known:
        if applied.get(migration.number, migration.sha256) != migration.sha256:
            raise StoreUnusable(
                f"the store's schema {migration.number} ({migration.name}) is not the one of this "
                "Clew: use the version that made it, or restore a backup; nothing was changed"
            )


def _apply_migration(t: Tx, migration: Migration) -> None:
    t.execute(migration.sql)
    t.execute(
        "INSERT INTO migration (number, name, sha256, applied_at) VALUES ($1, $2, $3, $4)",
        migration.number,
        migration.name,
        migration.sha256,
        t.now,
    )
