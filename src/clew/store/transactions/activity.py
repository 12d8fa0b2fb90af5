"""Open work of all processes: unfinished turns, and the inputs that wait behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.clock import from_millis
from clew.core.inbox import InboxKind
from clew.core.turn import StopRequest, TurnState
from clew.record import Record
from clew.store.records import RecordQuery
from clew.store.transactions.owners import find_owner

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.ids import ConversationId, InboxId, TurnId
    from clew.core.scope import Scope
    from clew.store.contract import Tx
    from clew.store.transactions.owners import OwnerRecord

#: Queued inputs that are shown of one conversation.
MAX_SHOWN: Final = 5
#: Characters that are shown of a text.
MAX_TEXT: Final = 200


class OpenCall(Record):
    """A tool call that has begun and has no result."""

    turn: TurnId
    tool: str
    started_at: datetime
    #: It waits for an answer, or for another conversation, and occupies no process.
    suspended: bool


class OpenTurn(Record):
    """A turn without an outcome, and who has the right to go on with it."""

    id: TurnId
    conversation: ConversationId
    title: str | None
    scope: Scope
    state: TurnState
    stop: StopRequest | None
    steps: int
    model: str | None
    #: The beginning of what it answers.
    text: str
    started_at: datetime
    owner: str | None
    lease_until: datetime | None


class QueuedInput(Record):
    """An input that waits, with the number of those of its conversation."""

    id: InboxId
    conversation: ConversationId
    title: str | None
    scope: Scope
    kind: InboxKind
    text: str
    received_at: datetime
    waiting: int


class Activity(Record):
    """The open work of a store."""

    turns: list[OpenTurn]
    calls: list[OpenCall]
    #: In order, at most ``MAX_SHOWN`` of each conversation.
    queued: list[QueuedInput]
    #: The holders of the turns by their ids; those that are not known are left out.
    owners: dict[str, OwnerRecord]
    #: The holders that are alive.
    living: frozenset[str]


_TURNS: Final = RecordQuery(
    OpenTurn,
    """
    SELECT t.id, t.conversation_id AS conversation, c.title, c.scope, t.state, t.stop, t.steps,
           t.model, e.text, t.started_at, l.owner, l.expires_at AS lease_until
    FROM turn t
    JOIN conversation c ON c.id = t.conversation_id
    JOIN lease l ON l.conversation_id = t.conversation_id
    JOIN entry e ON e.conversation_id = t.conversation_id AND e.seq = t.first_seq
    """,
    {
        "state": TurnState,
        "stop": StopRequest,
        "text": lambda text: text[:MAX_TEXT],
        "started_at": from_millis,
        "lease_until": from_millis,
    },
)
_CALLS: Final = RecordQuery(
    OpenCall,
    """
    SELECT j.turn_id AS turn, j.tool, j.started_at, j.suspended
    FROM journal j JOIN turn t ON t.id = j.turn_id
    """,
    {"started_at": from_millis, "suspended": bool},
)
_QUEUED: Final = RecordQuery(
    QueuedInput,
    """
    SELECT i.id, i.conversation_id AS conversation, c.title, c.scope, i.kind, i.text, i.received_at,
           i.waiting
    """
    # The number of the place, and how many there are, are those of open inputs alone.
    """
    FROM (
        SELECT id, conversation_id, kind, text, received_at, n,
               row_number() OVER (PARTITION BY conversation_id ORDER BY n) AS place,
               count(*) OVER (PARTITION BY conversation_id) AS waiting
        FROM inbox WHERE outcome IS NULL
    ) i JOIN conversation c ON c.id = i.conversation_id
    """,
    {"kind": InboxKind, "text": lambda text: text[:MAX_TEXT], "received_at": from_millis},
)


def read_activity(t: Tx, *, limit: int) -> Activity:
    """Return the open work of all processes, oldest first; at most ``limit`` of each kind."""
    turns = _TURNS.fetch_all(
        t, "WHERE t.state <> 'done' ORDER BY t.started_at, t.id LIMIT $1", limit
    )
    calls = _CALLS.fetch_all(
        t,
        """
        WHERE t.state <> 'done' AND j.status IS NULL
        ORDER BY j.started_at, j.turn_id, j.position LIMIT $1
        """,
        limit,
    )
    queued = _QUEUED.fetch_all(t, "WHERE i.place <= $1 ORDER BY i.n LIMIT $2", MAX_SHOWN, limit)
    names = {turn.owner for turn in turns if turn.owner is not None}
    owners = {name: found for name in names if (found := find_owner(t, name)) is not None}
    return Activity(
        turns=turns,
        calls=calls,
        queued=queued,
        owners=owners,
        living=frozenset(name for name in names if t.is_alive(name)),
    )
