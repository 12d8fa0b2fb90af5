"""Functions that open a store by its URL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clew.errors import SettingsError, UsageError
from clew.store.migrate import (
    find_pending_migrations,
    migrate_schema,
    read_applied_migrations,
)
from clew.store.sqlite import open_sqlite
from clew.store.sqlite.staged_store import SqliteStagedStore
from clew.store.sqlite.sync_store import open_shared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.clock import Clock
    from clew.store.contract import Dialect, Store
    from clew.store.feature_schema import FeatureSchema
    from clew.store.staged_store import StagedStore
    from clew.store.sync_store import SyncStore


async def open_store(
    url: str,
    *,
    home: Path,
    clock: Clock | None = None,
    upgrade: bool = True,
    features: Sequence[FeatureSchema] = (),
) -> Store:
    """
    Open the store that a URL names; migrate its schema unless ``upgrade`` is false.

    So are the tables of ``features``; tables of others are left alone.

    ``sqlite:///FILE`` (relative to ``home``; an absolute path has four slashes) or
    ``postgresql://…``. ``home`` also contains ``run/`` with the lock files of the owners.
    ``clock`` replaces the database host's clock in tests.

    :raises SettingsError: if the URL names no supported database
    :raises StoreUnusable: if it cannot be opened; the message says why and what to do
    """
    store = await _open_driver(url, home=home, clock=clock)
    try:
        if upgrade:
            await store.write(migrate_schema, features=features)
    except BaseException:
        await store.aclose()
        raise
    return store


def sqlite_path(url: str, *, home: Path) -> Path | None:
    """Return the file of an SQLite store, which may not exist; ``None`` for other databases."""
    scheme, _, rest = url.partition("://")
    return home / rest[1:] if scheme == "sqlite" and rest.startswith("/") and rest != "/" else None


def open_sync_store(url: str, *, home: Path) -> SyncStore:
    """
    Open an existing store for one thread, to read it while others may be using it.

    Does not migrate its schema.

    :raises UsageError: if there is no store, or the URL names no supported database
    :raises StoreUnusable: if it cannot be opened, or a newer Clew wrote it
    """
    found = _connect_sync_store(url, home=home)
    try:
        found.read(find_pending_migrations)
        if found.read(read_applied_migrations) is None:
            raise UsageError(f"there is no store in {found.name} yet")
    except BaseException:
        found.close()
        raise
    return found


def _connect_sync_store(url: str, *, home: Path) -> SyncStore:
    detect_dialect(url)
    if path := sqlite_path(url, home=home):
        if not path.exists():
            raise UsageError(f"there is no store at {path} yet")
        return open_shared(path.resolve(), run_dir=home / "run")
    from clew.store.postgres.sync_store import PostgresSyncStore  # noqa: PLC0415  (an optional driver)

    return PostgresSyncStore(url)


def open_staged_store(url: str, *, home: Path) -> StagedStore:
    """
    Prepare a store that will become the one that a URL names; create its folder.

    :raises StoreInUse: while another process builds one there
    :raises StoreUnusable: if no store can be there
    """
    if detect_dialect(url) == "sqlite":
        path = sqlite_path(url, home=home)
        assert path is not None
        return SqliteStagedStore(path.resolve(), run_dir=home / "run")
    from clew.store.postgres.staged_store import PostgresStagedStore  # noqa: PLC0415  (optional)

    return PostgresStagedStore(url)


def detect_dialect(url: str) -> Dialect:
    """
    Return the database that a URL names.

    :raises SettingsError: if it is not a supported one
    """
    scheme = url.partition("://")[0]
    if scheme == "sqlite" and sqlite_path(url, home=Path()) is not None:
        return "sqlite"
    if scheme in ("postgresql", "postgres"):
        return "postgres"
    raise SettingsError(
        f"store.url names no database that Clew knows (it begins with {scheme!r}): "
        "use sqlite:///clew.db or postgresql://user@host/database"
    )


async def _open_driver(url: str, *, home: Path, clock: Clock | None) -> Store:
    detect_dialect(url)
    if path := sqlite_path(url, home=home):
        return await open_sqlite(path, run_dir=home / "run", clock=clock)
    from clew.store.postgres import open_postgres  # noqa: PLC0415  (an optional driver)

    return await open_postgres(url, clock=clock)
