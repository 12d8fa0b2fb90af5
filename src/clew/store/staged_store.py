"""Store that is built beside the current one and replaces it when complete."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from clew.store.sync_store import SyncStore


class StagedStore(abc.ABC):
    """
    Store under construction, not visible to others until ``publish``.

    Leaving the block keeps what was built, so that the build can be resumed.
    """

    #: Display name of the store that it will become.
    name: str

    @property
    @abc.abstractmethod
    def store(self) -> SyncStore:
        """Return the store that is being built."""

    @abc.abstractmethod
    def check_publishable(self, *, replace: bool) -> None:
        """
        Raise what ``publish`` would raise if it were called now.

        :raises StoreInUse: if a process uses the current store
        :raises StoreNotEmpty: if the current store is not empty, unless ``replace``
        """

    @abc.abstractmethod
    def clear(self) -> None:
        """Remove what was built so far."""

    def copy_pages_from(self, file: SyncStore, *, tell: Callable[[int, int], None]) -> bool:
        """Replace what was built with the pages of a file; ``False`` where there are no pages."""
        return False

    @abc.abstractmethod
    def publish(self, *, replace: bool) -> str | None:
        """
        Replace the current store; until then, or on failure, that one is unchanged.

        ``store`` can no longer be used. Returns the name under which the previous store is
        kept, or ``None`` if there was none, or an empty one.

        :raises StoreInUse: if a process has the current store open
        :raises StoreNotEmpty: if the current store is not empty, unless ``replace``
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Release the open files or connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
