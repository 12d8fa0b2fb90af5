"""
Locks on open files, which never wait and end with their process.

``flock``: other locks are lost when any descriptor of the file is closed in the process.
"""

from __future__ import annotations

import fcntl


def lock_descriptor(descriptor: int, *, shared: bool = False) -> None:
    """
    Lock an open file until its descriptor and every copy of it are closed.

    :raises BlockingIOError: while another descriptor has a lock that excludes this one
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    fcntl.flock(descriptor, kind | fcntl.LOCK_NB)


def try_lock_descriptor(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file as ``lock_descriptor`` does; ``False`` if another has it."""
    try:
        lock_descriptor(descriptor, shared=shared)
    except BlockingIOError:
        return False
    return True


def unlock_descriptor(descriptor: int) -> None:
    """Unlock an open file, also for copies of its descriptor."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
