"""Cases of calls without results, results without calls, and words between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from structlog.testing import capture_logs

from clew.agent import messages
from clew.agent.tool_pairing import pair_calls_with_results
from clew.core.ids import EntryId
from clew.engine.compaction import CompactionPolicy
from clew.store.transactions import entries, leases, sessions
from tests.contract.lifecycle.filling import EARLIER
from tests.failing.compacting import Plays, sent, sessions_of
from tests.failing.desk import FORMATS, Format, open_desk

if TYPE_CHECKING:
    from pathlib import Path

    from clew.core.ids import ConversationId
    from clew.store.contract import Tx
    from clew.testing import ProviderRequest


def _said(text: str) -> ModelMessage:
    return ModelRequest(parts=[UserPromptPart(text)])


def _call(*ids: str) -> ModelMessage:
    return ModelResponse(parts=[ToolCallPart("look", {"at": one}, one) for one in ids])


def _result(one: str, *before: str) -> ModelMessage:
    words = [UserPromptPart(text) for text in before]
    return ModelRequest(parts=[*words, ToolReturnPart("look", f"seen {one}", one)])


_ANSWER = ModelResponse(parts=[TextPart("an earlier answer")])
#: Histories as no turn of ours leaves them, and what of them has to be told in the log.
HISTORIES: dict[str, tuple[list[ModelMessage], list[str]]] = {
    "no result": ([_said("x"), _call("c1"), _said("y"), _ANSWER], ["c1"]),
    "half a batch": ([_said("x"), _call("c1", "c2"), _result("c2"), _ANSWER], ["c1"]),
    "no call": ([_said("x"), _result("c1"), _ANSWER], ["c1"]),
    "a result twice": ([_said("x"), _call("c1"), _result("c1"), _result("c1"), _ANSWER], ["c1"]),
    "a late result": (
        [_said("x"), _call("c1"), _said("y"), _ANSWER, _result("c1"), _ANSWER],
        ["c1", "c1"],
    ),
    "words before a result": ([_said("x"), _call("c1"), _result("c1", "y"), _ANSWER], []),
    "words between": (
        [_said("x"), _call("c1", "c2"), _result("c2"), _said("y"), _result("c1"), _ANSWER],
        [],
    ),
}  # fmt: skip


def _write(t: Tx, conversation: ConversationId, said: list[ModelMessage]) -> None:
    lease = leases.acquire_lease(t, conversation, owner=EARLIER).lease
    head = sessions.get_head(t, conversation)
    drafts = [
        messages.message_to_draft(EntryId(f"ent_{head.id}_{n}"), one) for n, one in enumerate(said)
    ]
    entries.append_entries(t, lease, head.id, drafts)
    leases.release_lease(t, lease)


def _complaints(request: ProviderRequest) -> list[str]:
    """Each call has one result, before anything else is said."""
    due: list[str] = []
    wrong: list[str] = []
    for message in request.messages:
        for result in message.results:
            wrong += [] if result.call_id in due else [f"a stray result {result.call_id}"]
            due = [call for call in due if call != result.call_id]
        wrong += [f"{message.text!r} before {due}"] * bool(message.texts and due)
        due += [call.id for call in message.calls]
    return wrong + due


@pytest.mark.parametrize("form", FORMATS)
async def test_b040_b042_b048_whatever_a_history_lacks_the_next_message_is_answered(
    tmp_path: Path, form: Format
) -> None:
    plays = Plays()
    async with open_desk(tmp_path, form) as desk:
        for name, (said, told) in HISTORIES.items():
            talk = await desk.begin()
            await desk.store.write(_write, desk.ids[talk], said)
            desk.play(plays)
            with capture_logs() as logs:
                answered = await desk.say(talk, "and now?")
            assert (name, answered.text, answered.asked) == (name, "an answer", [1])
            assert (name, _complaints(plays.turns[-1])) == (name, [])
            everything = sent(plays.turns[-1])
            assert all(text in everything for text in ('"x"', "an earlier answer", "and now?"))
            mended = [each for each in logs if each["event"] == "history_mended"]
            assert (name, [one for each in mended for one in _named(each)]) == (name, told)


def _named(event: Any) -> list[str]:
    return [*event["results_left_out"], *event["calls_without_result"]]


async def test_b048_such_a_history_can_be_compacted_too(tmp_path: Path) -> None:
    plays = Plays()
    async with open_desk(tmp_path, "chat", policy=CompactionPolicy(window=4_000)) as desk:
        for name, (said, _) in HISTORIES.items():
            talk = await desk.begin()
            more = [_said("more of it. " * 500), _ANSWER] * 4
            await desk.store.write(_write, desk.ids[talk], [*said, *more])
            desk.play(plays)
            answered = await desk.say(talk, "and now?")
            assert (name, answered.text, answered.notices) == (name, "an answer", [])
            assert await sessions_of(desk, talk) == ["start", "compression"]
            assert (name, _complaints(plays.turns[-1])) == (name, [])


def test_a_history_that_is_as_it_should_be_is_left_as_it_is() -> None:
    said = [
        _said("x"), _call("c1", "c2"),
        ModelRequest(parts=[ToolReturnPart("look", "b", "c2"), ToolReturnPart("look", "a", "c1"),
                            UserPromptPart("steered")]),
        _call("c3"),
    ]  # fmt: skip
    mended = pair_calls_with_results(said)
    assert all(new is old for new, old in zip(mended, said, strict=True))
