"""Opening a store by its URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.errors import SettingsError
from clew.store.migrate import Dialect, migrate
from clew.store.sqlite import open_sqlite

if TYPE_CHECKING:
    from pathlib import Path

    from clew.clock import Clock
    from clew.store.contract import Store


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


async def _open(url: str, *, home: Path, clock: Clock | None) -> tuple[Store, Dialect]:
    if path := file_of(url, home=home):
        return await open_sqlite(path, run_dir=home / "run", clock=clock), "sqlite"
    scheme = url.partition("://")[0]
    if scheme in ("postgresql", "postgres"):
        from clew.store.postgres import open_postgres  # noqa: PLC0415  (an optional driver)

        return await open_postgres(url, clock=clock), "postgres"
    raise SettingsError(
        f"store.url names no database that Clew knows (it begins with {scheme!r}): "
        "use sqlite:///clew.db or postgresql://user@host/database"
    )
