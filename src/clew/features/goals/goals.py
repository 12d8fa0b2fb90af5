"""Goals and their rounds in the store."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, LiteralString

from clew.core.scope import LOCAL
from clew.errors import NotFound, UsageError
from clew.record import Record, replace
from clew.store.records import RecordQuery

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, InboxId, OwnerId, TurnId
    from clew.core.route import RouteKey
    from clew.core.scope import Scope
    from clew.store.contract import Tx


class GoalState(enum.Enum):
    ACTIVE = "active"
    PAUSED = "paused"
    DONE = "done"
    STOPPED = "stopped"  #: given up, or replaced by another


class GoalReason(enum.Enum):
    """Reason for the state of a goal."""

    BY_HAND = "by_hand"  #: a person paused, ended or gave it up
    REPLACED = "replaced"
    AGENT = "agent"  #: the agent says that it is reached
    BLOCKED = "blocked"  #: the agent says that it needs a person
    JUDGE = "judge"  #: the judge says that it is reached
    JUDGE_FAILED = "judge_failed"
    ROUNDS = "rounds"
    BUDGET = "budget"
    DAY = "day"  #: the tokens of turns that no person began are spent
    FAILURES = "failures"
    STOPPED = "stopped"  #: a person stopped its turn
    MOVED = "moved"  #: its chat leads to another conversation
    NO_ACCESS = "no_access"
    BROKEN = "broken"  #: an error of ours


class RoundState(enum.Enum):
    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"  #: by a person
    INTERRUPTED = "interrupted"  #: by a message
    HELD = "held"  #: stored without a turn


class RoundVerdict(enum.Enum):
    """Word of the judge about a round."""

    REACHED = "reached"
    OPEN = "open"


class Goal(Record):
    """A goal of a conversation."""

    id: str
    conversation: ConversationId
    text: str
    state: GoalState
    reason: GoalReason | None
    #: Words of a model or of an error.
    remark: str | None
    rounds: int
    max_rounds: int
    tokens: int
    budget: int
    failures: int
    route: RouteKey | None
    payload: str
    #: 0 while people are still to be told of its state.
    told: int
    created_at: int
    resumed_at: int
    version: int

    @property
    def is_current(self) -> bool:
        """Return whether it has not ended."""
        return self.state in (GoalState.ACTIVE, GoalState.PAUSED)


class GoalRound(Record):
    """One round: an input that begins a turn, and how that ended."""

    goal: str
    n: int
    conversation: ConversationId
    input: InboxId
    state: RoundState
    #: How it failed.
    reason: str | None
    turn: TurnId | None
    tokens: int
    verdict: RoundVerdict | None
    #: What the judge says about it.
    remark: str | None
    owner: OwnerId | None
    at: int
    ended_at: int | None


_GOAL_COLUMNS: LiteralString = (
    "id, conversation, text, state, reason, remark, rounds, max_rounds, tokens, budget, failures,"
    " route, payload, told, created_at, resumed_at, version"
)
GOALS: Final = RecordQuery(
    Goal, f"SELECT {_GOAL_COLUMNS} FROM goals", {"state": GoalState, "reason": GoalReason}
)
ROUNDS: Final = RecordQuery(
    GoalRound,
    "SELECT goal, n, conversation, input, state, reason, turn, tokens, verdict, remark, owner, at,"
    " ended_at FROM goals_round",
    {"state": RoundState, "verdict": RoundVerdict},
)


def insert_goal(t: Tx, goal: Goal) -> None:
    """
    Store a new goal.

    :raises UsageError: if the conversation has one already
    """
    made = t.execute(
        f"""
        INSERT INTO goals ({_GOAL_COLUMNS})
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
        ON CONFLICT DO NOTHING
        """,
        goal.id, goal.conversation, goal.text, goal.state.value, _code(goal.reason), goal.remark,
        goal.rounds, goal.max_rounds, goal.tokens, goal.budget, goal.failures, goal.route,
        goal.payload, goal.told, goal.created_at, goal.resumed_at, goal.version,
    )  # fmt: skip
    if not made:
        raise UsageError("another goal was set here at the same moment")


def save_goal(t: Tx, goal: Goal) -> Goal:
    """Store what has changed of a locked goal; return it with its new version."""
    t.execute(
        """
        UPDATE goals
        SET state = $2, reason = $3, remark = $4, rounds = $5, max_rounds = $6, tokens = $7,
            budget = $8, failures = $9, route = $10, told = $11, resumed_at = $12, version = $13
        WHERE id = $1
        """,
        goal.id, goal.state.value, _code(goal.reason), goal.remark, goal.rounds, goal.max_rounds,
        goal.tokens, goal.budget, goal.failures, goal.route, goal.told, goal.resumed_at,
        goal.version + 1,
    )  # fmt: skip
    return replace(goal, version=goal.version + 1)


def _code(reason: GoalReason | None) -> str | None:
    return None if reason is None else reason.value


def end_goal(
    t: Tx,
    goal: Goal,
    state: GoalState,
    reason: GoalReason,
    *,
    remark: str | None = None,
    told: bool = False,
) -> Goal:
    """Pause or end a locked goal; people are told after its turn, unless they are ``told``."""
    changed = replace(goal, state=state, reason=reason, remark=remark, told=int(told))
    return save_goal(t, changed)


def find_current_goal(t: Tx, conversation: ConversationId) -> Goal | None:
    """Return the active or paused goal of a conversation, locked until the commit."""
    return GOALS.fetch_one(
        t, "WHERE conversation = $1 AND state IN ('active', 'paused') @LOCK", conversation
    )


def find_last_goal(t: Tx, conversation: ConversationId) -> Goal | None:
    """Return the current goal of a conversation, else the one before."""
    return GOALS.fetch_one(
        t,
        "WHERE conversation = $1"
        " ORDER BY CASE WHEN state IN ('active', 'paused') THEN 0 ELSE 1 END,"
        " created_at DESC, id DESC LIMIT 1",
        conversation,
    )


def get_goal(t: Tx, goal: str, *, viewer: Scope = LOCAL) -> Goal:
    """
    Return a goal.

    :raises NotFound: if there is none that the viewer may see
    """
    found = GOALS.fetch_one(
        t,
        """
        WHERE id = $1 AND EXISTS (
            SELECT 1 FROM conversation c
            WHERE c.id = goals.conversation AND ($2 = 'local' OR c.scope = $2)
        )
        """,
        goal,
        viewer,
    )
    if found is None:
        raise NotFound("goal", goal)
    return found


def lock_goal(t: Tx, goal: str) -> Goal | None:
    """Return a goal that no other process changes until the commit."""
    return GOALS.fetch_one(t, "WHERE id = $1 @LOCK", goal)


def list_goals(t: Tx, *, viewer: Scope, ended: bool = False) -> list[Goal]:
    """Return the goals that a viewer may see, oldest first; with ``ended`` the past ones too."""
    return GOALS.fetch_all(
        t,
        """
        WHERE ($2 = 1 OR state IN ('active', 'paused')) AND EXISTS (
            SELECT 1 FROM conversation c
            WHERE c.id = goals.conversation AND ($1 = 'local' OR c.scope = $1)
        )
        ORDER BY created_at, id
        """,
        viewer,
        int(ended),
    )


_IDLE: LiteralString = """
    EXISTS (SELECT 1 FROM head h WHERE h.conversation_id = goals.conversation)
    AND NOT EXISTS (
        SELECT 1 FROM turn n WHERE n.conversation_id = goals.conversation AND n.state <> 'done'
    )
    AND NOT EXISTS (
        SELECT 1 FROM inbox i WHERE i.conversation_id = goals.conversation AND i.outcome IS NULL
    )
"""


def list_due_goals(t: Tx, *, limit: int, conversation: ConversationId | None = None) -> list[str]:
    """
    Return the goals to go on with: in a conversation without a turn and without a queue.

    Those that were paused or ended meanwhile have a round to settle.
    """
    return t.fetch_column(
        f"""
        SELECT id FROM goals
        WHERE (state = 'active' OR told = 0
               OR id IN (SELECT r.goal FROM goals_round r WHERE r.state = 'started'))
          AND ($2 = '' OR conversation = $2) AND {_IDLE}
        ORDER BY id LIMIT $1
        """,
        limit,
        conversation or "",
    )


def is_due(t: Tx, goal: Goal) -> bool:
    """Return whether the conversation of a goal has no turn and no queue."""
    return t.exists(f"SELECT 1 FROM goals WHERE id = $1 AND {_IDLE}", goal.id)


def find_round(t: Tx, goal: str, n: int) -> GoalRound | None:
    """Return a round of a goal."""
    return ROUNDS.fetch_one(t, "WHERE goal = $1 AND n = $2", goal, n)


def list_rounds(t: Tx, goal: str, *, limit: int) -> list[GoalRound]:
    """Return the last rounds of a goal, newest first."""
    return ROUNDS.fetch_all(t, "WHERE goal = $1 ORDER BY n DESC LIMIT $2", goal, limit)


def insert_round(t: Tx, goal: Goal, n: int, input_id: InboxId) -> None:
    """Store a round that begins."""
    t.execute(
        """
        INSERT INTO goals_round (goal, n, conversation, input, state, at)
        VALUES ($1, $2, $3, $4, 'started', $5)
        """,
        goal.id,
        n,
        goal.conversation,
        input_id,
        t.now,
    )


def save_round(t: Tx, found: GoalRound) -> GoalRound:
    """Store what has changed of a round of a locked goal."""
    t.execute(
        """
        UPDATE goals_round
        SET state = $3, reason = $4, turn = $5, tokens = $6, verdict = $7, remark = $8, owner = $9,
            ended_at = $10
        WHERE goal = $1 AND n = $2
        """,
        found.goal, found.n, found.state.value, found.reason, found.turn, found.tokens,
        None if found.verdict is None else found.verdict.value, found.remark, found.owner,
        found.ended_at,
    )  # fmt: skip
    return found
