"""
Rounds: the end of one, and the acceptance of the next, are one commit.

Any process may try. The row of the goal is locked, and the number of the round is in the id of its
input: a round is accepted once, whatever the number of gateways and crashes.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from clew.clock import to_millis
from clew.core.access import AccessStatus, ChannelAccount
from clew.core.completion import Cause, make_completion_id, write_payload
from clew.core.double_text import DoubleText
from clew.core.inbox import InboxOutcome
from clew.core.run_report import with_report
from clew.core.turn import StopRequest, TurnOutcome
from clew.features.goals import goals
from clew.features.goals.goals import GoalState, RoundState
from clew.features.goals.planning import End, Go, GoalFacts, pause_before, plan_next
from clew.features.goals.telling import tell_people
from clew.features.goals.wording import format_round
from clew.record import Record, replace
from clew.store.transactions import conversations, entries, inbox, pairings, turn_queries
from clew.store.transactions.completions import accept_direct_input, sum_unattended_tokens
from clew.store.transactions.deliveries import is_channel_route
from clew.store.transactions.usage import sum_usage

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, OwnerId
    from clew.core.route import RouteKey
    from clew.core.turn import Turn
    from clew.features.goals.goals import Goal, GoalRound
    from clew.store.contract import Tx


class GoalRules(Record):
    """Settings of rounds, and the process that goes on with them."""

    has_judge: bool
    #: Tokens of a day of turns that no person began, for each scope.
    tokens: int
    owner: OwnerId


class JudgeRequest(Record):
    """A round that the judge is to be asked about."""

    goal: Goal
    n: int
    #: The answer of the round.
    answer: str


def advance_goal(
    t: Tx, goal_id: str, rules: GoalRules, *, is_judging: bool = False
) -> JudgeRequest | None:
    """
    Record the end of the last round, and begin the next, end the goal, or ask for its judge.

    Changes nothing while the conversation has a turn or a queue: people go first. With
    ``is_judging`` this process is asking the judge already.
    """
    goal = goals.lock_goal(t, goal_id)
    if goal is None or not goals.is_due(t, goal):
        return None
    goal, last = _settle_round(t, goal)
    if goal.state is GoalState.ACTIVE:
        goal = replace(goal, route=_find_route(t, goal.conversation, goal.route) or goal.route)
        match plan_next(_find_facts(t, goal, last, rules)):
            case Go.JUDGE if last is not None:
                return _claim_judging(t, goal, last, rules.owner, is_judging=is_judging)
            case End(state=state, reason=reason, remark=remark):
                goal = goals.end_goal(t, goal, state, reason, remark=remark)
            case _:
                _begin_round(t, goal, last)
    if not goal.told:
        tell_people(t, goal, owner=rules.owner)
    return None


def _settle_round(t: Tx, goal: Goal) -> tuple[Goal, GoalRound | None]:
    """Record how the last round has ended, once."""
    last = goals.find_round(t, goal.id, goal.rounds)
    if last is None or last.state is not RoundState.STARTED:
        return goal, last
    turn = inbox.find_turn_of_item(t, last.input)
    state = _find_round_state(t, last, turn)
    tokens = 0
    if turn is not None:
        used = sum_usage(t, goal.conversation, turn=turn.id)
        tokens = used.input_tokens + used.output_tokens
    ended = replace(
        last,
        state=state,
        turn=None if turn is None else turn.id,
        reason=None if turn is None else turn.error,
        tokens=tokens,
        ended_at=t.now,
    )
    failed = goal.failures + 1 if state is RoundState.FAILED else 0
    kept = goals.save_goal(t, replace(goal, tokens=goal.tokens + tokens, failures=failed))
    return kept, goals.save_round(t, ended)


def _find_round_state(t: Tx, last: GoalRound, turn: Turn | None) -> RoundState:
    if turn is None:
        item = inbox.find_item(t, last.input)
        held = item is not None and item.outcome is InboxOutcome.EXECUTED
        return RoundState.HELD if held else RoundState.STOPPED
    if turn.outcome is TurnOutcome.ANSWERED:
        return RoundState.DONE
    if turn.outcome is TurnOutcome.FAILED:
        return RoundState.FAILED
    return RoundState.STOPPED if turn.stop is StopRequest.STOP else RoundState.INTERRUPTED


def _find_facts(t: Tx, goal: Goal, last: GoalRound | None, rules: GoalRules) -> GoalFacts:
    route = _find_route(t, goal.conversation, goal.route)
    scope = conversations.get_scope(t, goal.conversation)
    return GoalFacts(
        goal=goal,
        last=last,
        is_stopped=_is_stopped(t, goal),
        is_moved=goal.route is not None and route is None,
        is_shut_out=_is_shut_out(t, goal),
        is_day_spent=sum_unattended_tokens(t, scope) >= rules.tokens,
        has_judge=rules.has_judge,
    )


def _find_route(t: Tx, conversation: ConversationId, first: RouteKey | None) -> RouteKey | None:
    """Return a route that leads to a conversation: the first one, else a chat."""
    if first is not None and conversations.resolve_route(t, first) == conversation:
        return first
    routes = conversations.list_routes(t, conversation)
    return next((route for route in routes if is_channel_route(route)), None)


def _is_stopped(t: Tx, goal: Goal) -> bool:
    turn = turn_queries.find_last_done_turn(t, goal.conversation)
    if turn is None or turn.stop is not StopRequest.STOP or turn.finished_at is None:
        return False
    return to_millis(turn.finished_at) >= goal.resumed_at


def _is_shut_out(t: Tx, goal: Goal) -> bool:
    told: dict[str, Any] = json.loads(goal.payload)
    if "account" not in told or "sender" not in told:
        return False
    account = ChannelAccount(channel=told["account"][0], account=told["account"][1])
    status = pairings.lock_access_status(t, account, told["sender"]["id"])
    return status in (AccessStatus.REMOVED, AccessStatus.BLOCKED)


def _claim_judging(
    t: Tx, goal: Goal, last: GoalRound, owner: OwnerId, *, is_judging: bool
) -> JudgeRequest | None:
    """Return the request to the judge, unless a process that is alive sends it."""
    is_other = last.owner is not None and last.owner != owner and t.is_alive(last.owner)
    if is_judging or is_other:
        return None
    goals.save_round(t, replace(last, owner=owner))
    return make_judge_request(t, goal, last)


def make_judge_request(t: Tx, goal: Goal, last: GoalRound) -> JudgeRequest:
    """Return what the judge is asked about a round that has a turn."""
    assert last.turn is not None
    turn = turn_queries.get_turn(t, last.turn)
    texts = entries.read_assistant_texts(t, turn)
    return JudgeRequest(goal=goal, n=last.n, answer=texts[-1] if texts else "")


def _begin_round(t: Tx, goal: Goal, last: GoalRound | None) -> None:
    """Accept the input of the next round, which waits behind everything that people have said."""
    n = goal.rounds + 1
    payload = write_payload(Cause(kind="goal", id=goal.id), [goal.payload])
    item = make_completion_id(f"{goal.id}_{n}")
    accept_direct_input(
        t,
        item,
        format_round(goal, n, last),
        with_report(payload, quiet_if=None),
        conversation=goal.conversation,
        double_text=DoubleText.QUEUE,
        answer_to=goal.route,
    )
    if wait := pause_before(goal.failures) // timedelta(milliseconds=1):
        # A message that comes meanwhile takes it along.
        t.execute("UPDATE inbox SET due_at = $2 WHERE id = $1", item, t.now + wait)
    goals.insert_round(t, goal, n, item)
    goals.save_goal(t, replace(goal, rounds=n))
