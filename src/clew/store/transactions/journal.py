"""The tool journal: the intent before a call runs, its result after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.errors import NotFound
from clew.store.transactions import files, rows
from clew.store.transactions.leases import hold

if TYPE_CHECKING:
    from clew.core.effect import Effect
    from clew.core.ids import TurnId
    from clew.core.journal import CallKey, CallStatus, FullToolResult, JournaledCall
    from clew.core.lease import Lease
    from clew.store.contract import Tx


def find_call(t: Tx, key: CallKey) -> JournaledCall | None:
    """What the journal holds of a call: nothing, its intent, or its result."""
    row = t.one(
        f"{rows.JOURNAL} WHERE turn_id = $1 AND step = $2 AND call_id = $3",
        key.turn_id,
        key.step,
        key.call_id,
    )
    return None if row is None else rows.journaled_call(row)


def intend(
    t: Tx,
    lease: Lease,
    key: CallKey,
    *,
    position: int,
    tool: str,
    args: str,
    effect: Effect,
) -> tuple[JournaledCall, bool]:
    """
    Store that a call is about to run, and say whether this is the first time.

    Not the first time: what the journal holds already is returned and nothing is changed; the
    caller decides by the effect, and says ``run_again`` before it runs the call once more.

    :raises LeaseLost: if the lease is not held any more
    """
    hold(t, lease)
    inserted = t.run(
        """
        INSERT INTO journal (turn_id, step, call_id, conversation_id, position, tool, args, effect,
                             started_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (turn_id, step, call_id) DO NOTHING
        """,
        key.turn_id,
        key.step,
        key.call_id,
        lease.conversation_id,
        position,
        tool,
        args,
        effect.value,
        t.now,
    )
    return _known(t, key), bool(inserted)


def run_again(t: Tx, lease: Lease, key: CallKey) -> JournaledCall:
    """
    Count one more run of a call whose effect allows it.

    :raises LeaseLost: if the lease is not held any more
    """
    hold(t, lease)
    t.run(
        """
        UPDATE journal SET runs = runs + 1
        WHERE turn_id = $1 AND step = $2 AND call_id = $3 AND status IS NULL
        """,
        key.turn_id,
        key.step,
        key.call_id,
    )
    return _known(t, key)


def settle(
    t: Tx,
    lease: Lease,
    key: CallKey,
    status: CallStatus,
    *,
    format: str,
    result: str,
    whole: FullToolResult | None = None,
) -> JournaledCall:
    """
    Store the result of a call. The first result stays: repeating it returns that one.

    Where it is too long for the context, the ``whole`` is kept beside it.

    :raises LeaseLost: if the lease is not held any more
    :raises NotFound: if its intent was not stored
    """
    hold(t, lease)
    stored = t.run(
        """
        UPDATE journal SET status = $4, format = $5, result = $6, finished_at = $7
        WHERE turn_id = $1 AND step = $2 AND call_id = $3 AND status IS NULL
        """,
        key.turn_id,
        key.step,
        key.call_id,
        status.value,
        format,
        result,
        t.now,
    )
    if stored and whole is not None:
        files.keep_result(
            t, lease.conversation_id, whole.call_id, tool=whole.tool, content=whole.content
        )
    t.wake(lease.conversation_id)
    return _known(t, key)


def _known(t: Tx, key: CallKey) -> JournaledCall:
    call = find_call(t, key)
    if call is None:
        raise NotFound("tool call", key.call_id)
    return call


def batch(t: Tx, turn: TurnId, step: int) -> list[JournaledCall]:
    """What the journal holds of one step, in call order."""
    found = t.all(f"{rows.JOURNAL} WHERE turn_id = $1 AND step = $2 ORDER BY position", turn, step)
    return [rows.journaled_call(row) for row in found]
