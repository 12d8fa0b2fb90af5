"""A store in the hands of one thread: for programs that do one thing to it and end."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from clew.store.contract import Tx
    from clew.store.migrate import Dialect

P = ParamSpec("P")
T = TypeVar("T")


class Direct(abc.ABC):
    """
    One connection; jobs as those of ``Store`` run one by one, in the calling thread.

    Ctrl-C ends a job at once, and nothing of it stays.
    """

    dialect: Dialect
    #: What people call this store: a file, or host and database; never with a password.
    name: str

    @abc.abstractmethod
    def read(self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a job on a consistent snapshot, for as long as it takes; no writer waits for it."""

    @abc.abstractmethod
    def write(self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a job in a transaction of its own; what it raises is raised, and nothing stays."""

    @abc.abstractmethod
    def close(self) -> None:
        """End the connection."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
