"""Shelves: stores as they can be read after a test, each with the agent that it is asked for."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from clew import runtime
from clew.agent.loop import AgentLoop
from clew.clock import SystemClock
from clew.config import load_settings
from clew.plugin.loading import load_features
from clew.store.opening import sqlite_path
from clew.store.postgres.dsn import Dsn
from clew.store.postgres.store import PostgresStore
from clew.store.postgres.tx import BEGIN_READ, PostgresTx
from clew.store.postgres.worker_connection import WorkerConnection
from clew.store.sqlite.driver import new_cursor
from clew.store.sqlite.liveness import SqliteLiveness
from clew.store.sqlite.opening import connect
from clew.store.sqlite.store import SqliteStore
from clew.store.sqlite.tx import JobContext, SqliteTx

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from typing import Concatenate

    from clew.config.lookup import SettingsCatalog
    from clew.engine.compaction import CompactionService
    from clew.engine.services import EngineServices
    from clew.store.contract import Tx

P = ParamSpec("P")
T = TypeVar("T")

#: No turn has had so many steps.
_STEPS = 1_000_000


@cache
def _catalog() -> SettingsCatalog:
    """The settings of the core and the built-in features."""
    return load_features(folder=Path()).catalog


class Reader:
    """A store that is only read, here and now."""

    def __init__(self, t: Tx) -> None:
        self._t = t

    async def read(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return job(self._t, *args, **kwargs)

    async def write(self, job: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Nothing is stored."""


@dataclass(kw_only=True)
class Shelf:
    """A store, with what its requests are made by."""

    place: Path | Dsn
    loop: AgentLoop
    compactions: CompactionService
    #: ``entry.n`` up to which it was looked at.
    seen: int = 0

    @contextmanager
    def reading(self) -> Generator[Tx]:
        """A transaction that reads."""
        if isinstance(self.place, Path):
            with _reading_file(self.place) as t:
                yield t
            return
        link = WorkerConnection(self.place, set(), pause=60.0)
        try:
            yield PostgresTx(link, BEGIN_READ, None)
        finally:
            link.drop()


@contextmanager
def _reading_file(path: Path) -> Generator[Tx]:
    connection = connect(path, reader=True)
    try:
        cursor = new_cursor(connection)
        cursor.execute("BEGIN")
        yield SqliteTx(
            connection, cursor, JobContext(SystemClock(), SqliteLiveness(path.parent / "run"))
        )
    finally:
        connection.close()


def of_means(means: EngineServices) -> Shelf | None:
    """The shelf of an engine; ``None`` where its store is none of ours."""
    place = _place(means.store)
    if place is None:
        return None
    return Shelf(place=place, loop=_loop(means), compactions=means.compaction)


def _loop(means: EngineServices) -> AgentLoop:
    return AgentLoop(
        means.loop.agent,
        max_steps=_STEPS,
        toolsets=means.loop.toolsets,
        capabilities=means.loop.capabilities,
    )


def _place(store: object) -> Path | Dsn | None:
    # A store tells nobody where it is.
    inside = vars(store)
    if isinstance(store, SqliteStore):
        return inside["_path"]
    return inside["_address"] if isinstance(store, PostgresStore) else None


def of_program(home: Path, environ: Mapping[str, str]) -> Shelf | None:
    """The shelf of a program; ``None`` where it could not have asked anything."""
    # Settings of a feature, and nothing that changes what is sent.
    kept = {name: text for name, text in environ.items() if "TELEMETRY" not in name}
    flags = {"model.name": "offline"}
    settings = load_settings(home=home, environ=kept, flags=flags, catalog=_catalog())
    url = settings.store.url
    place = sqlite_path(url, home=home) or Dsn(url)
    if isinstance(place, Path) and not place.exists():
        return None
    with _imports_of(home):
        means = runtime.build_services(settings, Reader(None))  # pyright: ignore[reportArgumentType]  (read later)
    loop = _loop(means)
    return Shelf(place=place, loop=loop, compactions=means.compaction)


@contextmanager
def _imports_of(home: Path) -> Generator[None]:
    """Forget imports from a home after the block: another home has modules of the same name."""
    path, modules = list(sys.path), set(sys.modules)
    try:
        yield
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and Path(file).is_relative_to(home):
                del sys.modules[name]
