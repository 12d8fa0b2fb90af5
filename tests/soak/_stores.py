"""Fresh stores for soaks: a folder, and a PostgreSQL server of their own."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests import postgres

if TYPE_CHECKING:
    from collections.abc import Generator

DATABASES = ("sqlite", "postgres")


@contextmanager
def server() -> Generator[str]:
    """The URL, without a database, of a PostgreSQL server for the length of the block."""
    with postgres.home() as home:
        yield home.url()


@contextmanager
def fresh(database: str, server_url: str) -> Generator[tuple[str, Path]]:
    """The URL of an empty store, and a home for it."""
    with tempfile.TemporaryDirectory(prefix="clew-soak-") as name:
        home = Path(name)
        if database == "sqlite":
            yield "sqlite:///clew.db", home
            return
        with postgres.database(server_url) as url:
            yield url, home
