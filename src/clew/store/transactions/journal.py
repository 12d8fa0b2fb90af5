"""The tool journal: the intent before a call runs, its result after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.clock import from_millis
from clew.core.effect import Effect
from clew.core.journal import CallFacts, CallStatus
from clew.errors import NotFound
from clew.store.records import RecordQuery
from clew.store.transactions import attachments, grants, rows, workspace_writes
from clew.store.transactions.leases import verify_lease_for_write

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, TurnId
    from clew.core.journal import CallKey, CallReason, FullToolResult, JournaledCall
    from clew.core.lease import Lease
    from clew.store.contract import Tx


def find_call(t: Tx, key: CallKey) -> JournaledCall | None:
    """Return the journal record of a call, or ``None``."""
    return rows.JOURNAL.fetch_one(
        t, "WHERE turn_id = $1 AND step = $2 AND call_id = $3", key.turn_id, key.step, key.call_id
    )


def record_intent(  # noqa: PLR0913  (each is a column of its own)
    t: Tx,
    lease: Lease,
    key: CallKey,
    *,
    position: int,
    tool: str,
    args: str,
    effect: Effect,
    requested: str | None = None,
    reason: CallReason | None = None,
) -> tuple[JournaledCall, bool]:
    """
    Store that a call is about to run, and return whether this is the first time.

    A repeated intent changes nothing and returns the existing record. The caller then
    decides by the effect, and calls ``count_rerun`` before it runs the call again.

    :raises LeaseLost: if the lease is not held any more
    """
    verify_lease_for_write(t, lease)
    inserted = t.execute(
        """
        INSERT INTO journal (turn_id, step, call_id, conversation_id, position, tool, args, effect,
                             started_at, requested, reason, grant_id, untrusted)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
        ON CONFLICT (turn_id, step, call_id) DO NOTHING
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
        requested,
        reason and reason.text,
        reason and reason.grant,
        int(reason is not None and reason.untrusted),
    )
    if inserted and reason is not None and reason.grant is not None:
        grants.use_grant(t, reason.grant)
    return _get_call(t, key), bool(inserted)


def record_reason(t: Tx, lease: Lease, key: CallKey, reason: CallReason) -> JournaledCall:
    """
    Replace the reason of a call that asked for approval once it ran, and need not wait for it.

    :raises LeaseLost: if the lease is not held any more
    """
    verify_lease_for_write(t, lease)
    t.execute(
        """
        UPDATE journal SET reason = $4, grant_id = $5
        WHERE turn_id = $1 AND step = $2 AND call_id = $3 AND status IS NULL
        """,
        key.turn_id,
        key.step,
        key.call_id,
        reason.text,
        reason.grant,
    )
    if reason.grant is not None:
        grants.use_grant(t, reason.grant)
    return _get_call(t, key)


def count_rerun(t: Tx, lease: Lease, key: CallKey) -> JournaledCall:
    """
    Count one more run of a call whose effect allows it.

    :raises LeaseLost: if the lease is not held any more
    """
    verify_lease_for_write(t, lease)
    t.execute(
        """
        UPDATE journal SET runs = runs + 1
        WHERE turn_id = $1 AND step = $2 AND call_id = $3 AND status IS NULL
        """,
        key.turn_id,
        key.step,
        key.call_id,
    )
    return _get_call(t, key)


def resume_suspended(t: Tx, lease: Lease, key: CallKey) -> JournaledCall:
    """
    Store that a suspended call is about to run again, from the top.

    :raises LeaseLost: if the lease is not held any more
    """
    verify_lease_for_write(t, lease)
    t.execute(
        """
        UPDATE journal SET suspended = 0
        WHERE turn_id = $1 AND step = $2 AND call_id = $3 AND status IS NULL
        """,
        key.turn_id,
        key.step,
        key.call_id,
    )
    return _get_call(t, key)


def record_result(  # noqa: PLR0913  (each is a column of its own)
    t: Tx,
    lease: Lease,
    key: CallKey,
    status: CallStatus,
    *,
    format: str,
    result: str,
    whole: FullToolResult | None = None,
    at: int = 0,
    untrusted: bool = False,
) -> JournaledCall:
    """
    Store the result of a call; the first result stays and is returned by a repetition.

    A result too long for the context is also stored completely, as ``whole``. One that holds
    text that strangers may have written is ``untrusted``. ``at`` ends what the call wrote.

    :raises LeaseLost: if the lease is not held any more
    :raises NotFound: if its intent was not stored
    """
    verify_lease_for_write(t, lease)
    stored = t.execute(
        """
        UPDATE journal SET untrusted = CASE WHEN $8 = 1 THEN 1 ELSE untrusted END,
                           status = $4, format = $5, result = $6, finished_at = $7
        WHERE turn_id = $1 AND step = $2 AND call_id = $3 AND status IS NULL
        """,
        key.turn_id,
        key.step,
        key.call_id,
        status.value,
        format,
        result,
        t.now,
        int(untrusted),
    )
    workspace_writes.end_writes(t, key, at=at, untrusted=untrusted)
    if stored and whole is not None:
        attachments.store_tool_result(
            t, lease.conversation_id, whole.call_id, tool=whole.tool, content=whole.content
        )
    t.notify(lease.conversation_id)
    return _get_call(t, key)


def mark_untrusted(t: Tx, key: CallKey) -> None:
    """Record that the result of a call holds text that strangers may have written."""
    t.execute(
        "UPDATE journal SET untrusted = 1 WHERE turn_id = $1 AND step = $2 AND call_id = $3",
        key.turn_id,
        key.step,
        key.call_id,
    )


def _get_call(t: Tx, key: CallKey) -> JournaledCall:
    call = find_call(t, key)
    if call is None:
        raise NotFound("tool call", key.call_id)
    return call


def list_step_calls(t: Tx, turn: TurnId, step: int) -> list[JournaledCall]:
    """Return the journal records of one step, in call order."""
    return rows.JOURNAL.fetch_all(
        t, "WHERE turn_id = $1 AND step = $2 ORDER BY position", turn, step
    )


_FACTS = RecordQuery(
    CallFacts,
    "SELECT tool, effect, runs, status, reason, started_at, finished_at FROM journal",
    {
        "effect": Effect,
        "status": CallStatus,
        "started_at": from_millis,
        "finished_at": from_millis,
    },
)


def get_call_facts(t: Tx, conversation: ConversationId, turn: TurnId, call_id: str) -> CallFacts:
    """
    Return what is known of a call in a turn of a conversation.

    :raises NotFound: if the journal has no such call
    """
    found = _FACTS.fetch_one(
        t,
        """
        WHERE conversation_id = $1 AND turn_id = $2 AND call_id = $3
        ORDER BY step DESC LIMIT 1
        """,
        conversation,
        turn,
        call_id,
    )
    if found is None:
        raise NotFound("tool call", call_id)
    return found


def list_last_calls(t: Tx, conversation: ConversationId, *, limit: int) -> list[JournaledCall]:
    """Return the last calls of a conversation, the newest last."""
    found = rows.JOURNAL.fetch_all(
        t,
        """
        WHERE turn_id IN (SELECT id FROM turn WHERE conversation_id = $1)
        ORDER BY started_at DESC, step DESC, position DESC LIMIT $2
        """,
        conversation,
        limit,
    )
    return found[::-1]
