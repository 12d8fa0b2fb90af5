"""Calls and results of other systems come in pairs, and nothing of them is lost."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as some
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from clew.agent.messages import load_message, message_to_draft
from clew.agent.plain_messages import (
    PlainCall,
    PlainResult,
    draft_response,
    draft_results,
    draft_text,
)
from clew.clock import from_millis
from clew.core.entry import Role
from clew.core.ids import EntryId
from clew.core.scope import LOCAL
from clew.foreign.conversations import (
    ForeignCall,
    ForeignCompaction,
    ForeignConversation,
    ForeignEvent,
    ForeignItem,
    ForeignMessage,
    ForeignResult,
)
from clew.foreign.encoding import EncodedConversation, encode_conversation
from clew.foreign.memory_text import MAX_FACT, list_facts
from clew.foreign.steps import NO_RESULT, StepOrderer
from clew.record import replace

_CALL_IDS = some.sampled_from(("a", "b", "", "a~2"))


def said(name: str, text: str = "hello") -> ForeignMessage:
    return ForeignMessage(id=name, role=Role.USER, at=1, text=text)


def called(name: str, *calls: str) -> ForeignMessage:
    made = tuple(ForeignCall(id=one, name="look", arguments="{}") for one in calls)
    return ForeignMessage(id=name, role=Role.ASSISTANT, at=2, text=name, calls=made)


def answered(name: str, *calls: str) -> ForeignMessage:
    given = tuple(ForeignResult(call_id=one, name="", text=f"{name}:{one}") for one in calls)
    return ForeignMessage(id=name, role=Role.TOOL, at=3, results=given)


def ordered(*items: ForeignItem) -> tuple[list[ForeignItem], StepOrderer]:
    orderer = StepOrderer()
    return list(orderer.order_items(items)), orderer


def names(items: list[ForeignItem]) -> list[str]:
    return [item.id for item in items]


def test_what_comes_between_a_call_and_its_result_comes_after_both() -> None:
    found, _ = ordered(called("1", "a"), said("2"), answered("3", "a"), said("4"))
    assert names(found) == ["1", "3", "2", "4"]


def test_calls_that_were_stored_one_by_one_are_one_step() -> None:
    items = (called("1", "a"), called("2", "b"), answered("3", "a"), answered("4", "b"))
    found, _ = ordered(*items)
    step, results = found
    assert isinstance(step, ForeignMessage)
    assert isinstance(results, ForeignMessage)
    assert [call.id for call in step.calls] == ["a", "b"]
    assert step.text == "1\n2"
    assert [one.text for one in results.results] == ["3:a", "4:b"]


def test_a_call_without_a_result_says_so_and_a_result_without_a_call_is_an_event() -> None:
    found, orderer = ordered(called("1", "a"), answered("2", "z"), called("3", "b"))
    kinds = [type(one).__name__ for one in found]
    assert kinds.count("ForeignEvent") == 1
    assert (orderer.missing_results, orderer.lost_results) == (2, 1)
    texts = [one.text for item in found if isinstance(item, ForeignMessage) for one in item.results]
    assert texts == [NO_RESULT, NO_RESULT]


def test_ids_of_calls_that_repeat_are_numbered() -> None:
    items = (called("1", "a"), answered("2", "a"), called("3", "a"), answered("4", "a"))
    found, orderer = ordered(*items)
    steps = [one for one in found if isinstance(one, ForeignMessage)]
    assert [call.id for one in steps for call in one.calls] == ["a", "a~2"]
    assert [result.call_id for one in steps for result in one.results] == ["a", "a~2"]
    assert (orderer.missing_results, orderer.lost_results) == (0, 0)


@some.composite
def _item(draw: some.DrawFn) -> ForeignItem:
    name = str(draw(some.integers(0, 30)))
    match draw(some.sampled_from(("said", "called", "answered", "event", "compaction", "text"))):
        case "said":
            return said(name, draw(some.sampled_from(("", "x", "\0\ud800"))))
        case "called":
            return called(name, *draw(some.lists(_CALL_IDS, min_size=1, max_size=3)))
        case "answered":
            return answered(name, *draw(some.lists(_CALL_IDS, min_size=1, max_size=3)))
        case "event":
            return ForeignEvent(id=name, at=4, kind="note", text="a note")
        case "compaction":
            return ForeignCompaction(id=name, at=5, summary="short", kept_from=name)
        case _:
            return called(name)


def encoded(items: list[ForeignItem], *, is_growing: bool) -> EncodedConversation:
    found = ForeignConversation(id="x", items=items, created_at=0, is_growing=is_growing)
    return encode_conversation("test", found, scope=LOCAL)


def _entries(found: EncodedConversation) -> list[dict[str, object]]:
    return [record for kind, record in found.records if kind == "entry"]


@given(some.lists(_item(), max_size=25))
def test_every_call_is_answered_once_by_the_next_message(items: list[ForeignItem]) -> None:
    calls = answers = "[]"
    for entry in _entries(encoded(items, is_growing=False)):
        if entry["kind"] != "message":
            continue
        assert entry["answers"] == calls, "and in the order of the calls"
        calls, answers = str(entry["calls"]), str(entry["answers"])
    assert calls == "[]", answers


@given(some.lists(_item(), max_size=25))
def test_nothing_is_dropped(items: list[ForeignItem]) -> None:
    """Each text, call and result is in the records as often as in the source."""
    found = encoded(items, is_growing=False)
    texts = "\n".join(str(entry["text"]) for entry in _entries(found))
    results = Counter(
        one.text for item in items if isinstance(item, ForeignMessage) for one in item.results
    )
    for text, count in results.items():
        assert texts.count(text) >= count
    calls = sum(len(item.calls) for item in items if isinstance(item, ForeignMessage))
    stored = sum(
        str(entry["calls"]).count('","') + (entry["calls"] != "[]") for entry in _entries(found)
    )
    assert stored == calls
    people = sum(isinstance(item, ForeignMessage) and item.role is Role.USER for item in items)
    assert sum(entry["role"] == "user" for entry in _entries(found)) == people


@given(some.lists(_item(), max_size=25), some.integers(0, 25))
def test_a_conversation_that_has_grown_begins_as_before(items: list[ForeignItem], at: int) -> None:
    """Read at any moment while the other system writes."""
    before = _entries(encoded(items[:at], is_growing=True))
    after = _entries(encoded(items, is_growing=True))
    assert [entry["hash"] for entry in before] == [entry["hash"] for entry in after[: len(before)]]


def test_remembered_texts_become_one_fact_for_each_bullet_or_paragraph() -> None:
    text = (
        "# Me\n- likes tea\n  in the morning\n* [x] has a dog\n\nLives in Rome.\nSince 1990.\n§\n"
    )
    assert list_facts(text) == [
        "likes tea in the morning",
        "has a dog",
        "Lives in Rome. Since 1990.",
    ]
    long = "This is one sentence of a long text. " * 40
    parts = list_facts(long)
    assert max(map(len, parts)) <= MAX_FACT
    assert " ".join(parts) == long.strip()


def test_a_message_that_was_made_without_the_library_is_the_one_that_it_would_have_made() -> None:
    name, at = EntryId("ent_1"), 1_767_600_000_123
    when = from_millis(at)
    call, other = PlainCall(id="a", tool="look", arguments="{}"), "not JSON"
    made = draft_response(
        name,
        "text",
        reasoning="thought",
        calls=[call, replace(call, id="b", arguments=other)],
        model="m",
        at=at,
    )
    parts = [
        ThinkingPart("thought"),
        TextPart("text"),
        ToolCallPart("look", "{}", "a"),
        ToolCallPart("look", other, "b"),
    ]
    theirs = ModelResponse(parts, model_name="m", timestamp=when, finish_reason="tool_call")
    assert load_message(made.message) == theirs
    assert replace(made, message="") == replace(message_to_draft(name, theirs), message="")
    results = [PlainResult(call_id="a", tool="look", text="seen", is_error=False)]
    made = draft_results(name, results, at=at)
    asked = ModelRequest([ToolReturnPart("look", "seen", "a", timestamp=when)])
    assert load_message(made.message) == asked
    assert replace(made, message="") == replace(message_to_draft(name, asked), message="")
    made = draft_text(name, "hello", at=at)
    asked = ModelRequest([UserPromptPart("hello", timestamp=when)])
    assert load_message(made.message) == asked
    assert replace(made, message="") == replace(message_to_draft(name, asked), message="")
