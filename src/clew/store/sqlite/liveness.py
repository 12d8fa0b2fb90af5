"""Liveness of owners: each holds a lock on ``run/<owner>.lock`` until it ends."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from typing import TYPE_CHECKING

from clew.errors import StoreUnavailable
from clew.file_locks import lock_descriptor, try_lock_descriptor, unlock_descriptor

if TYPE_CHECKING:
    from pathlib import Path

_held: set[int] = set()
# Held across a fork, so that no descriptor is open but not yet recorded.
_forking = threading.Lock()
_NAME = re.compile(r"[\w.-]+", re.ASCII)


def _close_locks_in_child() -> None:
    # A forked child shares the lock through its copy of the descriptor and would keep its parent
    # alive. Closing the copy does not release the parent's lock; LOCK_UN here would.
    for descriptor in _held:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _held.clear()
    _forking.release()


os.register_at_fork(
    before=_forking.acquire, after_in_parent=_forking.release, after_in_child=_close_locks_in_child
)


class SqliteLiveness:
    """Lock files in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mine: dict[str, int] = {}
        self._lock = threading.Lock()

    def is_alive(self, owner: str) -> bool:
        """
        Return true if ``owner`` holds its lock; never waits and creates nothing.

        An owner whose file cannot be examined counts as alive: lease expiry is the
        backstop.
        """
        return owner in self._mine or not _is_free(self._lock_path(owner))

    def has_live_owner(self) -> bool:
        """Return true if any owner holds its lock."""
        return any(not _is_free(path) for path in self._folder.glob("*.lock"))

    def holds_lock(self, owner: str) -> bool:
        """Return true if this object holds the lock of ``owner``."""
        return owner in self._mine

    def register_owner(self, owner: str) -> None:
        """
        Take the lock of ``owner``, a name never used before; remove files of dead owners.

        :raises StoreUnavailable: if the file cannot be created
        """
        path = self._lock_path(owner)
        with self._lock:
            if owner in self._mine:
                return
            try:
                self._remove_dead_locks()
                self._mine[owner] = _create_lock_file(path)
            except OSError as error:
                raise StoreUnavailable(f"{path} cannot be made: {error.strerror}") from error

    def release_all(self) -> None:
        """Release every lock held by this object."""
        with self._lock:
            for owner, descriptor in self._mine.items():
                # In this order: a process that has the file open finds it locked or, soon, free.
                self._lock_path(owner).unlink(missing_ok=True)
                _release_lock(descriptor)
            self._mine.clear()

    def _lock_path(self, owner: str) -> Path:
        if not _NAME.fullmatch(owner):
            raise ValueError(f"{owner!r} is no name of an owner")
        return self._folder / f"{owner}.lock"

    def _remove_dead_locks(self) -> None:
        # A name is used once, so a free lock stays free: no owner can lose its lock here.
        for path in self._folder.glob("*.lock"):
            if _is_free(path):
                path.unlink(missing_ok=True)


def _create_lock_file(path: Path) -> int:
    # Locked under a temporary name first: the file never has its own name without its lock.
    unborn = path.with_suffix(".new")
    with _forking:
        descriptor = os.open(unborn, os.O_RDWR | os.O_CREAT, 0o600)
        _held.add(descriptor)
    try:
        lock_descriptor(descriptor)
        unborn.rename(path)
    except BaseException:
        _release_lock(descriptor)
        raise
    return descriptor


def _is_free(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        # Shared, so that two simultaneous checks do not take each other for the owner.
        return try_lock_descriptor(descriptor, shared=True)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _release_lock(descriptor: int) -> None:
    # Unlocked explicitly: a child between fork and exec may still hold a copy.
    with contextlib.suppress(OSError):
        unlock_descriptor(descriptor)
    with _forking:
        _held.discard(descriptor)
        os.close(descriptor)
