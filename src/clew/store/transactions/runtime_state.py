"""Runtime state of processes, cleared when a store moves or is restored from a backup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.record import Record
from clew.store.transactions.settings import get_setting, put_setting

if TYPE_CHECKING:
    from clew.store.contract import Tx

_RESTORED_AT: Final = ("store", "restored_at")


class ResumableWork(Record):
    """Work that the next process to open the store resumes."""

    #: Turns that were running and will be resumed.
    running: int
    #: Deliveries that may have arrived already.
    unknown: int


def clear_runtime_state(t: Tx, *, later: bool) -> ResumableWork:
    """
    Remove the leases, locks and clients of the processes that had the store open.

    With ``later`` the original store has been used since: whatever was undelivered may have
    been sent meanwhile, so each such delivery becomes ``unknown``, to be reconciled or
    marked as a repeat.
    """
    # The fence rises as with every change of owner, so that no former holder can write.
    t.execute(
        """
        UPDATE lease SET owner = NULL, expires_at = NULL, fence = fence + 1
        WHERE owner IS NOT NULL
        """
    )
    t.execute("DELETE FROM owner")
    t.execute("DELETE FROM client")
    t.execute("DELETE FROM lock")
    if later:
        put_setting(t, *_RESTORED_AT, str(t.now))
    unknown = _mark_deliveries_unknown(t) if later else 0
    running = t.fetch_value("SELECT count(*) FROM turn WHERE state = 'running'")
    return ResumableWork(running=running, unknown=unknown)


def read_restore_time(t: Tx) -> int:
    """
    Return when the store was last restored from a backup, in milliseconds; 0 if never.

    What was revoked after the backup was taken is back in it: credentials from before this
    moment must not be accepted.
    """
    return int(get_setting(t, *_RESTORED_AT) or 0)


def _mark_deliveries_unknown(t: Tx) -> int:
    t.execute(
        """
        UPDATE delivery_chunk SET state = 'unknown'
        WHERE state IN ('pending', 'sending') AND delivery_id IN (
            SELECT id FROM delivery WHERE state IN ('pending', 'sending')
        )
        """
    )
    # Attempts are reset to 0, which marks the parts created later as doubtful too.
    return t.execute(
        """
        UPDATE delivery
        SET state = 'unknown', owner = NULL, claim = NULL, attempts = 0, updated_at = $1
        WHERE state IN ('pending', 'sending')
        """,
        t.now,
    )


#: Tables that refill by themselves or only record processes: a store with no other rows is empty.
_TRANSIENT_TABLES = ("client", "hold", "hook_mark", "lock", "owner", "setting")


def is_store_empty(counts: dict[str, int]) -> bool:
    """Return whether a store with these row counts per table holds no user data."""
    return not any(count for table, count in counts.items() if table not in _TRANSIENT_TABLES)
