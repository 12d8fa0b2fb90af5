"""A store that fails at one job until it is mended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from clew.store.contract import Store
from tests.killing.killer import job_name

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from clew.store.contract import Tx

T = TypeVar("T")
P = ParamSpec("P")


class FailingStore(Store):
    """Passes everything on but the writes of one job, by its name."""

    def __init__(self, job: str, error: Exception) -> None:
        self._job: str | None = job
        self._error = error
        self._inner: Store | None = None

    @classmethod
    def at(cls, job: str, error: Exception) -> FailingStore:
        return cls(job, error)

    def around(self, inner: Store) -> Store:
        self._inner = inner
        return self

    def mend(self) -> None:
        self._job = None

    @property
    def inner(self) -> Store:
        assert self._inner is not None
        return self._inner

    async def write(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        if job_name(job) == self._job:
            raise self._error
        return await self.inner.write(job, *args, **kwargs)

    async def read(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self.inner.read(job, *args, **kwargs)

    def watch_changes(self) -> AsyncIterator[frozenset[str] | None]:
        return self.inner.watch_changes()

    async def register_owner(self, owner: str) -> None:
        await self.inner.register_owner(owner)

    async def check_available(self) -> None:
        await self.inner.check_available()

    async def aclose(self) -> None:
        await self.inner.aclose()
