"""The operations of goals, for HTTP and JSON-RPC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, Field

from clew.api.operation_scope import CLIENTS
from clew.api.operations import HttpBinding, make_operation
from clew.api.schemas import QueryParams, RequestBody
from clew.features.goals import front, goals
from clew.features.goals.front import GoalLimits, GoalRequest, make_goal_id
from clew.store.transactions.conversations import get_visible_conversation, resolve_conversation
from clew.wire.errors import ErrorCode
from clew.wire.methods import RpcMethod
from clew.wire.models import WireModel
from clew.wire.params import Params

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.api.operation_call import OperationCall
    from clew.api.operations import AnyOperation
    from clew.core.scope import Scope
    from clew.features.goals.settings import GoalsSettings
    from clew.store.contract import Tx

_PATH: Final = "/api/goals"
_GOAL_PATH: Final = f"{_PATH}/{{goal}}"
_SUMMARIES: Final = {
    "pause": "Pause a goal: its round ends, and no other begins.",
    "resume": "Resume a paused goal; what was used up is allowed again.",
    "done": "End a goal as reached.",
    "stop": "Give a goal up.",
}


class GoalShape(WireModel):
    """A goal of a conversation, and how far it is."""

    id: str
    conversation: str
    text: str
    state: str
    reason: str | None
    rounds: int
    max_rounds: int
    tokens: int
    budget: int
    failures: int
    route: str | None
    created_at: str
    version: int


class GoalList(WireModel):
    items: list[GoalShape]


class RoundShape(WireModel):
    """One round towards a goal."""

    n: int
    state: str
    reason: str | None
    turn: str | None
    tokens: int
    #: What the judge says: ``reached`` or ``open``.
    verdict: str | None
    remark: str | None
    at: str


class RoundList(WireModel):
    items: list[RoundShape]


class ListGoalsParams(Params):
    """The goals that are listed; with `ended` those that have ended as well."""

    ended: bool = False


class ListGoalsQuery(QueryParams):
    ended: bool = Field(default=False, strict=False)


class GoalParams(Params):
    """A goal: its id, or the id, NAME or route of its conversation."""

    goal: str = Field(min_length=1, max_length=200)


class RoundsParams(GoalParams):
    """The last rounds of a goal."""

    limit: int = Field(default=50, ge=1, le=1000)


class RoundsQuery(QueryParams):
    limit: int = Field(default=50, ge=1, le=1000, strict=False)


class _GoalFields(BaseModel):
    """The fields of a new goal."""

    #: The conversation, by id, NAME or route.
    conversation: str = Field(min_length=1, max_length=200)
    text: str = Field(min_length=1, max_length=front.MAX_TEXT)
    #: Instead of ``goals.rounds`` and ``goals.budget``.
    rounds: int | None = Field(default=None, ge=1, le=1000)
    budget: int | None = Field(default=None, ge=1)


class SetGoalParams(_GoalFields, Params):
    """The goal of a conversation, in the place of the one before."""


class SetGoalRequest(_GoalFields, RequestBody):
    """The goal of a conversation, in the place of the one before."""


def make_limits(settings: GoalsSettings, given: SetGoalParams | None = None) -> GoalLimits:
    """Return the limits of a goal: those given, else those of the settings."""
    rounds = None if given is None else given.rounds
    budget = None if given is None else given.budget
    return GoalLimits(rounds=rounds or settings.rounds, budget=budget or settings.budget)


def set_goal(
    t: Tx, operation: str, given: SetGoalParams, limits: GoalLimits, *, viewer: Scope
) -> dict[str, Any]:
    """Set the goal of a conversation that the viewer may see; return it as programs get it."""
    name = given.conversation
    found = get_visible_conversation(t, resolve_conversation(t, name), viewer=viewer, name=name)
    request = GoalRequest(id=make_goal_id(operation), text=given.text, limits=limits)
    return front.describe_goal(front.set_goal(t, found.id, request))


def change_named(
    t: Tx, action: str, name: str, limits: GoalLimits, *, viewer: Scope
) -> dict[str, Any]:
    """Pause, resume or end a goal by its name; return it as programs get it."""
    goal = front.find_goal(t, name, viewer=viewer)
    return front.describe_goal(front.change_goal(t, goal.id, action, limits))


def describe_all(t: Tx, viewer: Scope, *, ended: bool) -> list[dict[str, Any]]:
    """Return the goals that a viewer may see, as programs get them."""
    return [front.describe_goal(one) for one in goals.list_goals(t, viewer=viewer, ended=ended)]


def describe_named(t: Tx, name: str, *, viewer: Scope) -> dict[str, Any]:
    """Return a goal by its name, as programs get it."""
    return front.describe_goal(front.find_goal(t, name, viewer=viewer))


def describe_rounds(t: Tx, name: str, *, limit: int, viewer: Scope) -> list[dict[str, Any]]:
    """Return the last rounds of a goal, newest first, as programs get them."""
    goal = front.find_goal(t, name, viewer=viewer)
    return [front.describe_round(one) for one in goals.list_rounds(t, goal.id, limit=limit)]


def find_operation(name: str, get_settings: Callable[[], GoalsSettings]) -> object:
    """Return an operation by its name."""
    action = name.removeprefix("goal.")
    if action == "set":
        return _make_set(get_settings)
    if action in front.ACTIONS:
        return _make_change(action, get_settings)
    return _READING[action]


def _make_set(get_settings: Callable[[], GoalsSettings]) -> AnyOperation:
    async def handle(call: OperationCall, given: SetGoalParams) -> GoalShape:
        services = call.engine.feature_context
        made = await services.store.write(
            set_goal,
            services.ids.new_operation_id(),
            given,
            make_limits(get_settings(), given),
            viewer=call.context.viewer,
        )
        return GoalShape.model_validate(made)

    return make_operation(
        RpcMethod(
            name="goal.set",
            params=SetGoalParams,
            result=GoalShape,
            summary="Set the goal of a conversation; the agent goes on by itself towards it.",
            errors=(ErrorCode.INVALID_VALUE, ErrorCode.NOT_FOUND),
        ),
        handle,
        CLIENTS,
        HttpBinding(
            method="POST",
            path=_PATH,
            summary="Set the goal of a conversation",
            answer="The goal",
            body=SetGoalRequest,
        ),
    )


def _make_change(action: str, get_settings: Callable[[], GoalsSettings]) -> AnyOperation:
    async def handle(call: OperationCall, given: GoalParams) -> GoalShape:
        changed = await call.engine.feature_context.store.write(
            change_named,
            action,
            given.goal,
            make_limits(get_settings()),
            viewer=call.context.viewer,
        )
        return GoalShape.model_validate(changed)

    return make_operation(
        RpcMethod(
            name=f"goal.{action}",
            params=GoalParams,
            result=GoalShape,
            summary=_SUMMARIES[action],
            errors=(ErrorCode.INVALID_VALUE, ErrorCode.NOT_FOUND),
        ),
        handle,
        CLIENTS,
        HttpBinding(
            method="POST",
            path=f"{_GOAL_PATH}/{action}",
            summary=_SUMMARIES[action].rstrip("."),
            answer="The goal",
            subject="goal",
        ),
    )


async def _list_goals(call: OperationCall, given: ListGoalsParams) -> GoalList:
    found = await call.engine.feature_context.store.read(
        describe_all, call.context.viewer, ended=given.ended
    )
    return GoalList.model_validate({"items": found})


async def _get_goal(call: OperationCall, given: GoalParams) -> GoalShape:
    found = await call.engine.feature_context.store.read(
        describe_named, given.goal, viewer=call.context.viewer
    )
    return GoalShape.model_validate(found)


async def _list_rounds(call: OperationCall, given: RoundsParams) -> RoundList:
    found = await call.engine.feature_context.store.read(
        describe_rounds, given.goal, limit=given.limit, viewer=call.context.viewer
    )
    return RoundList.model_validate({"items": found})


_READING: Final[dict[str, AnyOperation]] = {
    "list": make_operation(
        RpcMethod(name="goal.list", params=ListGoalsParams, result=GoalList, summary="The goals."),
        _list_goals,
        CLIENTS,
        HttpBinding(
            method="GET",
            path=_PATH,
            summary="The goals of conversations",
            answer="The goals, oldest first",
            query=ListGoalsQuery,
        ),
        is_ordered=False,
    ),
    "get": make_operation(
        RpcMethod(
            name="goal.get",
            params=GoalParams,
            result=GoalShape,
            summary="A goal, and how far it is.",
            errors=(ErrorCode.NOT_FOUND,),
        ),
        _get_goal,
        CLIENTS,
        HttpBinding(
            method="GET", path=_GOAL_PATH, summary="A goal", answer="The goal", subject="goal"
        ),
        is_ordered=False,
    ),
    "rounds": make_operation(
        RpcMethod(
            name="goal.rounds",
            params=RoundsParams,
            result=RoundList,
            summary="The rounds towards a goal, newest first.",
            errors=(ErrorCode.NOT_FOUND,),
        ),
        _list_rounds,
        CLIENTS,
        HttpBinding(
            method="GET",
            path=f"{_GOAL_PATH}/rounds",
            summary="The rounds towards a goal",
            answer="The rounds, newest first",
            query=RoundsQuery,
            subject="goal",
        ),
        is_ordered=False,
    ),
}
