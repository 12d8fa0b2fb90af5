"""Limits and time-outs of a PostgreSQL store."""

from __future__ import annotations

from clew.record import Record


class Limits(Record):
    """Limits of one store; times in seconds."""

    #: Connections that write, and so the number of concurrent write jobs.
    writers: int = 8
    #: Connections that read; separate, so that readers never wait for writers.
    readers: int = 4
    #: A job is retried for this long while the server cannot be reached.
    retry_timeout: float = 5.0
    #: The same once a COMMIT was lost, whose outcome is unknown.
    uncertain_retry_timeout: float = 30.0
    #: After we lost our own proof of life, other owners have this long to renew theirs.
    liveness_grace: float = 3.0
    #: A job that waits longer for a free connection, or for other transactions, fails.
    queue_timeout: float = 30.0
    #: The server ends a write transaction that is idle for this long: we were paused.
    idle_transaction_timeout: float = 5.0
    #: The same for readers, which hold no lock.
    idle_read_timeout: float = 60.0
    #: A job that takes this long triggers a check that the server still responds.
    stall_check_interval: float = 10.0
    #: A connection that is idle for this long is closed.
    idle_timeout: float = 300.0
    #: Repetitions of a job after a conflict with another transaction.
    max_conflicts: int = 20
    #: Repetitions of a job after its connection broke.
    max_losses: int = 5
    #: Listeners that received nothing for this long assume that anything changed.
    poll_interval: float = 1.0
    #: A persistent connection (owner locks, LISTEN) is tested this often.
    keepalive_interval: float = 5.0
    #: ``check_available`` gives up after this long.
    check_timeout: float = 5.0
