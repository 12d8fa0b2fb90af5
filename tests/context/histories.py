"""
Histories as a log holds them, drawn by hypothesis: all that a turn can leave behind.

Several calls at once, results that came late or not at all, calls that were called off, messages
that steered, answers that were interrupted, notices and failed requests in between.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from clew.agent import messages
from clew.core.entry import EntryKind, NewEntry, Role
from clew.core.ids import EntryId, OwnerId
from clew.store.transactions import entries, leases, sessions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic_ai.messages import ModelMessage

    from clew.core.ids import ConversationId
    from clew.store.contract import Tx

_EARLIER = OwnerId("own_earlier")
#: Outcomes of a call, and the result that the model gets.
RESULTS = {
    "done": "{} done",
    "much": "{} done" + " and more" * 400,
    "shown": "{} done",
    "failed": "error: {} cannot be done",
    "denied": "not approved: not {}",
    "called off": "cancelled: stopped by the user",
    "unknown": "interrupted, outcome unknown: it had begun",
}


@dataclass(frozen=True, kw_only=True)
class Step:
    """A response that calls tools, and what came of each call."""

    results: Sequence[str]
    #: The model says something beside its calls.
    talks: bool
    #: Entries between the calls and their results: a process died, a person was asked.
    late: bool
    #: A message of a person's that joined after the results.
    steered: bool


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """Messages of people, the steps that followed, and the outcome."""

    said: int
    steps: Sequence[Step]
    #: ``answer``, ``interrupted`` (a part of one), ``failed`` (a notice) or ``open`` (nothing).
    ended: str


History = tuple[Exchange, ...]

_steps = st.builds(
    Step,
    results=st.lists(st.sampled_from(sorted(RESULTS)), min_size=1, max_size=3),
    talks=st.booleans(),
    late=st.booleans(),
    steered=st.booleans(),
)
_exchanges = st.builds(
    Exchange,
    said=st.sampled_from([1, 1, 1, 2]),
    steps=st.lists(_steps, max_size=2),
    ended=st.sampled_from(["answer", "answer", "interrupted", "failed", "open"]),
)
histories: st.SearchStrategy[History] = st.lists(_exchanges, min_size=1, max_size=3).map(tuple)


def write(t: Tx, conversation: ConversationId, history: History) -> int:
    """Append a history to the head, as turns of an owner that is gone; the last seq."""
    lease = leases.acquire_lease(t, conversation, owner=_EARLIER).lease
    head = sessions.get_head(t, conversation)
    drafts = list(_drafts(conversation, history))
    entries.append_entries(t, lease, head.id, drafts)
    leases.release_lease(t, lease)
    return len(drafts)


def _drafts(conversation: ConversationId, history: History) -> Iterator[NewEntry]:
    numbers = itertools.count(1)
    for place, exchange in enumerate(history):
        for what in _exchange(place, exchange):
            entry = EntryId(f"ent_{conversation}_{next(numbers)}")
            yield _aside(entry, what) if isinstance(what, str) else _message(entry, what)


def _message(entry: EntryId, message: ModelMessage) -> NewEntry:
    draft = messages.message_to_draft(entry, message)
    # As the engine stores them: what a tool shows was not said by a person.
    return replace(draft, role=Role.TOOL) if draft.answers else draft


def _aside(entry: EntryId, text: str) -> NewEntry:
    kind = EntryKind.ATTEMPT if text.startswith("529") else EntryKind.EVENT
    return NewEntry(id=entry, kind=kind, role=None, text=text, format="clew/notice", message="null")


def _exchange(place: int, exchange: Exchange) -> Iterator[ModelMessage | str]:
    for number in range(exchange.said):
        yield said(f"question {place}.{number}, and what belongs to it")
    for number, step in enumerate(exchange.steps):
        yield from _step(f"{place}-{number}", step)
        if step.steered:
            yield said(f"by the way {place}.{number}")
    match exchange.ended:
        case "answer":
            yield ModelResponse(parts=[TextPart(f"answer {place}, at some length")])
        case "interrupted":
            yield messages.make_interrupted_response(f"answer {place}, at")
            yield "stopped by the user"
        case "failed":
            yield "That failed: 500"
        case _:
            pass


def said(text: str) -> ModelRequest:
    """Return a message of a person."""
    return ModelRequest(parts=[UserPromptPart(text)])


def _step(name: str, step: Step) -> Iterator[ModelMessage | str]:
    calls = [
        ToolCallPart("look", {"at": f"{name}-{n}"}, f"call-{name}-{n}")
        for n in range(len(step.results))
    ]
    text = [TextPart(f"Let me see {name}.")] if step.talks else []
    yield ModelResponse(parts=[*text, *calls])
    if step.late:
        yield "529 overloaded"
        yield "a person was asked"
    results = [
        ToolReturnPart("look", RESULTS[kind].format(call.tool_call_id), call.tool_call_id)
        for kind, call in zip(step.results, calls, strict=True)
    ]
    shown = [UserPromptPart(f"a picture of {name}")] if "shown" in step.results else []
    yield ModelRequest(parts=[*results, *shown])
