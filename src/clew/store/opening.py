"""Opening a store by its URL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clew.errors import SettingsError, UsageError
from clew.store.migrate import Dialect, applied, migrate, missing
from clew.store.sqlite import open_sqlite
from clew.store.sqlite.direct import open_used
from clew.store.sqlite.incoming import SqliteIncoming

if TYPE_CHECKING:
    from clew.clock import Clock
    from clew.store.contract import Store
    from clew.store.direct import Direct
    from clew.store.incoming import Incoming


async def open_store(
    url: str, *, home: Path, clock: Clock | None = None, upgrade: bool = True
) -> Store:
    """
    Open the store that a URL names, with its schema brought up to date unless ``upgrade`` is false.

    ``sqlite:///FILE`` (relative to ``home``; an absolute path has four slashes) or
    ``postgresql://…``. ``home`` also holds ``run/``, the owners' locks. ``clock`` replaces the
    database host's clock in tests.

    :raises SettingsError: if the URL names no database that Clew knows
    :raises StoreUnusable: if it cannot be opened; says why and what to do
    """
    store, dialect = await _open(url, home=home, clock=clock)
    try:
        if upgrade:
            await store.write(migrate, dialect)
    except BaseException:
        await store.aclose()
        raise
    return store


def file_of(url: str, *, home: Path) -> Path | None:
    """The file of an SQLite store, which may not be there yet; ``None`` for other databases."""
    scheme, _, rest = url.partition("://")
    return home / rest[1:] if scheme == "sqlite" and rest.startswith("/") and rest != "/" else None


def open_direct(url: str, *, home: Path) -> Direct:
    """
    Open a store that is there already for one thread, to read it beside whoever uses it.

    Its schema stays as it is.

    :raises UsageError: if there is no store, or the URL names no database that Clew knows
    :raises StoreUnusable: if it cannot be opened, or is a newer Clew's
    """
    found = _direct(url, home=home)
    try:
        found.read(missing, found.dialect)
        if found.read(applied, found.dialect) is None:
            raise UsageError(f"there is no store in {found.name} yet")
    except BaseException:
        found.close()
        raise
    return found


def _direct(url: str, *, home: Path) -> Direct:
    dialect_of(url)
    if path := file_of(url, home=home):
        if not path.exists():
            raise UsageError(f"there is no store at {path} yet")
        return open_used(path.resolve(), run_dir=home / "run")
    from clew.store.postgres.direct import PostgresDirect  # noqa: PLC0415  (an optional driver)

    return PostgresDirect(url)


def open_incoming(url: str, *, home: Path) -> Incoming:
    """
    A store to be built, that will be the one that a URL names; its folder is made.

    :raises StoreInUse: while another process builds there
    :raises StoreUnusable: if there can be no store
    """
    if dialect_of(url) == "sqlite":
        path = file_of(url, home=home)
        assert path is not None
        return SqliteIncoming(path.resolve(), run_dir=home / "run")
    from clew.store.postgres.incoming import PostgresIncoming  # noqa: PLC0415  (optional)

    return PostgresIncoming(url)


def dialect_of(url: str) -> Dialect:
    """
    Which database a URL names.

    :raises SettingsError: if none that Clew knows
    """
    scheme = url.partition("://")[0]
    if scheme == "sqlite" and file_of(url, home=Path()) is not None:
        return "sqlite"
    if scheme in ("postgresql", "postgres"):
        return "postgres"
    raise SettingsError(
        f"store.url names no database that Clew knows (it begins with {scheme!r}): "
        "use sqlite:///clew.db or postgresql://user@host/database"
    )


async def _open(url: str, *, home: Path, clock: Clock | None) -> tuple[Store, Dialect]:
    dialect = dialect_of(url)
    if path := file_of(url, home=home):
        return await open_sqlite(path, run_dir=home / "run", clock=clock), dialect
    from clew.store.postgres import open_postgres  # noqa: PLC0415  (an optional driver)

    return await open_postgres(url, clock=clock), dialect
