"""Child conversations in the store: who works for whom, and what became of it."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, LiteralString

from clew.core.ids import ConversationId
from clew.core.journal import CallKey
from clew.errors import NotFound
from clew.record import Record
from clew.store.records import RecordQuery
from clew.store.transactions.usage import TokenUsage

if TYPE_CHECKING:
    from clew.core.ids import InboxId, SessionId, TurnId
    from clew.core.route import RouteKey
    from clew.store.contract import Tx


class ChildState(enum.Enum):
    RUNNING = "running"
    DONE = "done"  #: it has answered
    FAILED = "failed"
    STOPPED = "stopped"  #: by a person, its parent or its budget; there may be a part of an answer


class Child(Record):
    """A conversation in which an agent works on a task of another conversation."""

    conversation_id: ConversationId
    parent_conversation: ConversationId
    parent_session: SessionId
    parent_turn: TurnId
    parent_step: int
    parent_call: str
    root: ConversationId
    depth: int
    route: RouteKey | None
    agent: str
    title: str
    max_tokens: int
    max_steps: int
    warned_at: int | None
    background: bool
    state: ChildState
    reason: str | None
    round: int
    turn: TurnId | None
    woken: InboxId | None
    created_at: int
    ended_at: int | None
    #: The budget of its kind of agent, where that has one.
    kind_tokens: int | None
    kind_steps: int | None

    @property
    def is_running(self) -> bool:
        return self.state is ChildState.RUNNING

    @property
    def call_key(self) -> CallKey:
        """Return the call that asked for it."""
        return CallKey(turn_id=self.parent_turn, step=self.parent_step, call_id=self.parent_call)


COLUMNS: Final[LiteralString] = (
    "conversation_id, parent_conversation, parent_session, parent_turn, parent_step, parent_call,"
    " root, depth, route, agent, title, max_tokens, max_steps, warned_at, background, state,"
    " reason, round, turn, woken, created_at, ended_at, kind_tokens, kind_steps"
)
CHILDREN: Final = RecordQuery(
    Child,
    f"SELECT {COLUMNS} FROM delegation_child",
    {"background": bool, "state": ChildState},
)


def make_child_id(key: CallKey) -> ConversationId:
    """Return the conversation of the child that a call asks for: the same for the same call."""
    return ConversationId(f"cnv_{key.make_digest()[:26]}")


def find_child(t: Tx, conversation: ConversationId) -> Child | None:
    """Return the child with this conversation; ``None`` if it is none."""
    return CHILDREN.fetch_one(t, "WHERE conversation_id = $1", conversation)


def lock_child(t: Tx, conversation: ConversationId) -> Child | None:
    """Return a child that no other process changes until the commit."""
    return CHILDREN.fetch_one(t, "WHERE conversation_id = $1 @LOCK", conversation)


def list_running_children(t: Tx, parent: ConversationId) -> list[Child]:
    """Return the children of a conversation that run, the oldest first."""
    return CHILDREN.fetch_all(
        t,
        "WHERE parent_conversation = $1 AND state = 'running' ORDER BY created_at, conversation_id",
        parent,
    )


def list_children_of_turn(t: Tx, turn: TurnId) -> list[Child]:
    """Return the children that the calls of a turn have asked for."""
    return CHILDREN.fetch_all(
        t, "WHERE parent_turn = $1 ORDER BY created_at, conversation_id", turn
    )


def insert_child(t: Tx, child: Child) -> None:
    """Store a new child."""
    t.execute(
        f"""
        INSERT INTO delegation_child ({COLUMNS})
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
                $19, $20, $21, $22, $23, $24)
        """,
        child.conversation_id, child.parent_conversation, child.parent_session, child.parent_turn,
        child.parent_step, child.parent_call, child.root, child.depth, child.route, child.agent,
        child.title, child.max_tokens, child.max_steps, child.warned_at, int(child.background),
        child.state.value, child.reason, child.round, child.turn, child.woken, child.created_at,
        child.ended_at, child.kind_tokens, child.kind_steps,
    )  # fmt: skip


def move_to_background(t: Tx, conversation: ConversationId) -> bool:
    """Have the answer come as a completion; ``False`` if it is there already."""
    return bool(
        t.execute(
            "UPDATE delegation_child SET background = 1"
            " WHERE conversation_id = $1 AND state = 'running'",
            conversation,
        )
    )


def sum_steps(t: Tx, conversation: ConversationId) -> int:
    """Return the model requests that were answered in a conversation's turns."""
    return int(
        t.fetch_value(
            "SELECT COALESCE(sum(steps), 0) FROM turn WHERE conversation_id = $1", conversation
        )
    )


_TREE: Final[LiteralString] = """
    WITH RECURSIVE tree (id) AS (
        SELECT CAST($1 AS TEXT)
        UNION
        SELECT c.conversation_id FROM delegation_child c
        JOIN tree p ON p.id = c.parent_conversation
    )
"""


def sum_tree_usage(t: Tx, top: ConversationId) -> TokenUsage:
    """Return the usage of a conversation and of all below it."""
    ((read, cached, written, cost),) = t.fetch_all(
        f"""
        {_TREE}
        SELECT COALESCE(sum(u.input_tokens), 0), COALESCE(sum(u.cached_tokens), 0),
               COALESCE(sum(u.output_tokens), 0), sum(u.cost_micros)
        FROM usage u JOIN tree p ON p.id = u.conversation_id
        """,
        top,
    )
    return TokenUsage(
        input_tokens=int(read),
        cached_tokens=int(cached),
        output_tokens=int(written),
        cost_micros=None if cost is None else int(cost),
    )


def sum_tree_tokens(t: Tx, top: ConversationId) -> int:
    """Return the tokens of a conversation and of all below it."""
    used = sum_tree_usage(t, top)
    return used.input_tokens + used.output_tokens


def list_tree(t: Tx, top: ConversationId) -> list[Child]:
    """Return all children below a conversation, each parent before its children."""
    found = list[Child]()
    for child in CHILDREN.fetch_all(
        t, "WHERE parent_conversation = $1 ORDER BY created_at, conversation_id", top
    ):
        found += [child, *list_tree(t, child.conversation_id)]
    return found


def get_child(t: Tx, conversation: ConversationId) -> Child:
    """
    Return the child with this conversation.

    :raises NotFound: if it is none
    """
    found = find_child(t, conversation)
    if found is None:
        raise NotFound("task", conversation)
    return found
