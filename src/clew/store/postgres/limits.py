"""How many, how often and for how long."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Bounds of one store; times in seconds."""

    #: Connections that write, and so jobs that write at the same time.
    writers: int = 8
    #: Connections that read. They are apart, so that readers never wait for writers.
    readers: int = 4
    #: A job is tried again for this long while the server cannot be reached.
    patience: float = 5.0
    #: The same once a COMMIT was lost, of which nobody knows whether it was stored.
    doubt: float = 30.0
    #: When our own proof of life was lost, others get so long to renew theirs.
    regain: float = 3.0
    #: A job that waits longer for a free connection, or for other transactions, is refused.
    queue: float = 30.0
    #: The server ends a writing transaction that does nothing for this long: we are paused.
    pause: float = 5.0
    #: The same for readers, who hold no lock.
    pause_reading: float = 60.0
    #: After this long in a job it is asked whether the server still answers.
    silence: float = 10.0
    #: A connection that had nothing to do for this long is closed.
    idle: float = 300.0
    #: How often a job is run again because another transaction was in its way.
    conflicts: int = 20
    #: How often a job is run again because its connection broke under it.
    losses: int = 5
    #: Listeners that heard nothing for this long look for themselves.
    poll: float = 1.0
    #: A line of its own (owner lock, LISTEN) is tested this often.
    pulse: float = 5.0
    #: ``check`` gives up after this long.
    check: float = 5.0
