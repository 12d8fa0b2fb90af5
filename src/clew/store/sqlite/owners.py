"""Which processes live: each owner holds a lock on ``run/<owner>.lock`` until it ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import threading
from typing import TYPE_CHECKING

from clew.errors import StoreUnavailable

if TYPE_CHECKING:
    from pathlib import Path

# flock, not fcntl locks: those vanish when any descriptor of the file is closed in this process.
_held: set[int] = set()
# Held across a fork, so that no descriptor is between being opened and being noted.
_forking = threading.Lock()
_NAME = re.compile(r"[\w.-]+", re.ASCII)


def _let_go_in_child() -> None:
    # A forked child shares the lock through its copy of the descriptor and would keep its parent
    # alive. Closing the copy does not release the parent's lock; LOCK_UN here would.
    for descriptor in _held:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _held.clear()
    _forking.release()


os.register_at_fork(
    before=_forking.acquire, after_in_parent=_forking.release, after_in_child=_let_go_in_child
)


class Owners:
    """The lock files in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mine: dict[str, int] = {}
        self._lock = threading.Lock()

    def alive(self, owner: str) -> bool:
        """
        Whether ``owner`` holds its lock; never waits and creates nothing.

        An owner whose file cannot be examined counts as alive: expiry is the backstop.
        """
        return owner in self._mine or not _is_free(self._path(owner))

    def anybody(self) -> bool:
        """Whether any owner holds its lock."""
        return any(not _is_free(path) for path in self._folder.glob("*.lock"))

    def holds(self, owner: str) -> bool:
        """Whether the lock is held through this object."""
        return owner in self._mine

    def register(self, owner: str) -> None:
        """
        Hold the lock of ``owner``, a name never used before; clear away what the dead left.

        :raises StoreUnavailable: if the file cannot be made
        """
        path = self._path(owner)
        with self._lock:
            if owner in self._mine:
                return
            try:
                self._sweep()
                self._mine[owner] = _locked_file(path)
            except OSError as error:
                raise StoreUnavailable(f"{path} cannot be made: {error.strerror}") from error

    def release(self) -> None:
        """Let go of every lock held through this object."""
        with self._lock:
            for owner, descriptor in self._mine.items():
                # In this order: who opened the file before finds it locked or, soon, free.
                self._path(owner).unlink(missing_ok=True)
                _close(descriptor)
            self._mine.clear()

    def _path(self, owner: str) -> Path:
        if not _NAME.fullmatch(owner):
            raise ValueError(f"{owner!r} is no name of an owner")
        return self._folder / f"{owner}.lock"

    def _sweep(self) -> None:
        # A name is used once, so a lock that is free stays free: nobody loses one to this.
        for path in self._folder.glob("*.lock"):
            if _is_free(path):
                path.unlink(missing_ok=True)


def _locked_file(path: Path) -> int:
    # Locked under another name first: under its own, the file is never there without its lock.
    unborn = path.with_suffix(".new")
    with _forking:
        descriptor = os.open(unborn, os.O_RDWR | os.O_CREAT, 0o600)
        _held.add(descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unborn.rename(path)
    except BaseException:
        _close(descriptor)
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
        # Shared, so that two who ask at once do not take each other for the owner.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _close(descriptor: int) -> None:
    # Released by hand: a child between fork and exec may still hold a copy.
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    with _forking:
        _held.discard(descriptor)
        os.close(descriptor)
