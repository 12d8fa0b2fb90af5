"""A store that is being built, and takes the place of the one that is there when it is whole."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

    from clew.store.direct import Direct


class Incoming(abc.ABC):
    """
    Beside a store, where nobody looks, until ``publish``.

    Leaving the block keeps what was built, so that building can go on later.
    """

    #: The store that it will be.
    name: str

    @property
    @abc.abstractmethod
    def direct(self) -> Direct:
        """The store that is being built."""

    @abc.abstractmethod
    def check(self, *, replace: bool) -> None:
        """
        Raise what ``publish`` would raise if it were called now.

        :raises StoreInUse: if somebody works on the store in place
        :raises StoreNotEmpty: if that one is not empty, unless it may be replaced
        """

    @abc.abstractmethod
    def clear(self) -> None:
        """Remove what was built so far."""

    @abc.abstractmethod
    def publish(self, *, replace: bool) -> str | None:
        """
        Put it in place: until then, and if this fails, what is there stays as it is.

        Takes the built store away from ``direct``. What was there is kept under another name, which
        is returned; ``None`` if there was no store, or an empty one.

        :raises StoreInUse: if somebody has the store in place open
        :raises StoreNotEmpty: if that one is not empty, unless it may be replaced
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Let go of what is open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
