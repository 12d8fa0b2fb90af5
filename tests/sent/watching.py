"""Record of the providers and engines that a test starts, at their start and end."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew.engine.engine import Engine
from clew.testing import CapturedRequest, FakeProvider
from tests.sent.shelves import Shelf, of_means, of_program

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from pathlib import Path

    from clew.engine.services import EngineServices

__all__ = ["CapturedRequest", "Shelf", "forget", "observe", "paused", "program", "taken"]


@dataclass(kw_only=True)
class _Provider:
    provider: FakeProvider
    taken: int = 0
    ended: bool = False


@dataclass(kw_only=True)
class _Asker:
    """Client that asks providers for the contents of a shelf."""

    make: Callable[[], Shelf | None]
    engine: Engine | None = None
    ended: bool = False
    made: Shelf | None = None

    def shelf(self) -> Shelf | None:
        if self.made is None:
            self.made = self.make()
        return self.made


@dataclass(kw_only=True)
class _Watch:
    providers: list[_Provider] = field(default_factory=list[_Provider])
    askers: list[_Asker] = field(default_factory=list[_Asker])
    paused: bool = False


_watch = _Watch()


def observe() -> None:
    """Note every provider and engine of this process from now on."""
    _look_on(FakeProvider, "__enter__", _provider_begins)
    _look_on(FakeProvider, "__exit__", _provider_ends)
    _look_on(Engine, "__init__", _engine_is_made)
    _look_on(Engine, "__aenter__", _engine_begins)
    _look_on(Engine, "__aexit__", _engine_ends)


def _look_on(cls: type[Any], name: str, noted: Callable[..., None]) -> None:
    inner = getattr(cls, name)

    def outer(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _watch.paused:
            noted(self, *args, **kwargs)
        return inner(self, *args, **kwargs)

    setattr(cls, name, outer)


def _provider_begins(provider: FakeProvider) -> None:
    _watch.providers.append(_Provider(provider=provider))


def _provider_ends(provider: FakeProvider, *_: object) -> None:
    for noted in _watch.providers:
        noted.ended |= noted.provider is provider


def _engine_is_made(engine: Engine, means: EngineServices, **_: object) -> None:
    # One that never works lives for a test at most.
    _watch.askers.append(_Asker(make=lambda: of_means(means), engine=engine, ended=True))


def _engine_begins(engine: Engine) -> None:
    _engine_works(engine, ended=False)


def _engine_ends(engine: Engine, *_: object) -> None:
    _engine_works(engine, ended=True)


def _engine_works(engine: Engine, *, ended: bool) -> None:
    for asker in _watch.askers:
        if asker.engine is engine:
            asker.ended = ended


@contextmanager
def program(home: Path, environ: Mapping[str, str]) -> Generator[None]:
    """A program with this home and environment asks for the length of the block."""
    asker = _Asker(make=lambda: of_program(home, environ))
    _watch.askers.append(asker)
    try:
        yield
    finally:
        asker.ended = True


@contextmanager
def paused() -> Generator[None]:
    """Nothing is noted in the block."""
    _watch.paused = True
    try:
        yield
    finally:
        _watch.paused = False


def taken() -> tuple[list[CapturedRequest], list[Shelf]]:
    """The requests since the last call, and the shelves that they should come from."""
    requests: list[CapturedRequest] = []
    for noted in _watch.providers:
        found = noted.provider.requests
        requests += found[noted.taken :]
        noted.taken = len(found)
    shelves = [shelf for asker in _watch.askers if requests and (shelf := asker.shelf())]
    return requests, shelves


def forget() -> None:
    """Forget those that have ended: a test begins."""
    _watch.providers = [noted for noted in _watch.providers if not noted.ended]
    _watch.askers = [asker for asker in _watch.askers if not asker.ended]
