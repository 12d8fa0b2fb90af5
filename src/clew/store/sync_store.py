"""Synchronous store, for programs that do one thing to it and exit."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from clew.store.contract import Dialect, Tx

P = ParamSpec("P")
T = TypeVar("T")


class SyncStore(abc.ABC):
    """
    Store whose jobs run one by one, in the calling thread.

    Ctrl-C ends a job at once and rolls it back.
    """

    dialect: Dialect
    #: Display name: a file, or host and database; never with a password.
    name: str

    @abc.abstractmethod
    def read(self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a job on a consistent snapshot, however long it takes, without blocking writers."""

    @abc.abstractmethod
    def write(self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a job in its own transaction, which is rolled back if the job raises."""

    @abc.abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
