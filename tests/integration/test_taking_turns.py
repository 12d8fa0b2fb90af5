"""Strict chat templates: whatever happened before, the next request is not refused."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from clew.commands.runner import CommandRunner
from clew.core import scope as scopes
from clew.core.double_text import DoubleText
from clew.core.route import local_route
from clew.core.turn import StopRequest
from clew.engine.compaction_planner import CompactionPolicy
from clew.testing import Calls, EmptyText, Fail, Hang, ScriptedCall, Text
from clew.testing.provider import ProviderRequest, reply_in_sequence
from tests.failing.desk import FORMATS, always, open_desk

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from clew.testing import Reply
    from tests.failing.desk import Desk

SUMMARY = "## Intent\nThe person talks about boats.\n\n## Done\n" + "It was said. " * 30


def plays(request: ProviderRequest) -> Reply:
    """A model that summarises where it is asked to."""
    return Text(SUMMARY if "## Intent" in request.last_user_text else "an answer")


async def _command(desk: Desk, talk: str, text: str) -> str:
    reply = await CommandRunner(desk.engine).run_command(
        text, target=local_route(talk), viewer=scopes.LOCAL
    )
    return reply.text


async def failed(desk: Desk, talk: str) -> None:
    desk.play(always(Fail("authentication")))
    assert (await desk.say(talk, "this fails")).outcome == "failed"


async def failed_after_a_tool(desk: Desk, talk: str) -> None:
    desk.play(reply_in_sequence([Calls([ScriptedCall("nothing")])], default=Fail("authentication")))
    assert (await desk.say(talk, "call it")).outcome == "failed"


async def _cut_short(desk: Desk, talk: str, stop: Callable[[], Awaitable[object]]) -> None:
    desk.play(always(Hang()))
    before = len(desk.provider.requests)
    accepted = await desk.submit(talk, "stopped before any words")
    await desk.until(lambda: len(desk.provider.requests) > before)
    desk.play(plays)
    await stop()
    await desk.end(accepted)


async def stopped(desk: Desk, talk: str) -> None:
    await _cut_short(desk, talk, lambda: desk.engine.request_stop(desk.ids[talk]))


async def rolled_back(desk: Desk, talk: str) -> None:
    await _cut_short(
        desk, talk, lambda: desk.engine.request_stop(desk.ids[talk], StopRequest.ROLLBACK)
    )


async def _while_it_hangs(desk: Desk, talk: str, rule: DoubleText) -> None:
    def again() -> Awaitable[object]:
        message = desk.engine.new_input("meanwhile", double_text=rule)
        return desk.engine.submit(message, target=local_route(talk))

    await _cut_short(desk, talk, again)
    await desk.engine.wait_until_idle()


async def interrupted(desk: Desk, talk: str) -> None:
    await _while_it_hangs(desk, talk, DoubleText.INTERRUPT)


async def replaced(desk: Desk, talk: str) -> None:
    await _while_it_hangs(desk, talk, DoubleText.ROLLBACK)


async def collected(desk: Desk, talk: str) -> None:
    desk.play(plays)
    target = local_route(talk)
    for text in ("one", "two", "three"):
        message = desk.engine.new_input(text, double_text=DoubleText.COLLECT)
        await desk.engine.submit(message, target=target)
    await desk.engine.wait_until_idle()


async def empty(desk: Desk, talk: str) -> None:
    desk.play(reply_in_sequence([EmptyText(), Text("after all")]))
    assert (await desk.say(talk, "say something")).text == "after all"


async def empty_for_ever(desk: Desk, talk: str) -> None:
    desk.play(always(EmptyText()))
    assert (await desk.say(talk, "say something")).outcome == "failed"


async def retried(desk: Desk, talk: str) -> None:
    desk.play(plays)
    await _command(desk, talk, "/retry")
    await desk.engine.wait_until_idle()


async def undone(desk: Desk, talk: str) -> None:
    await _command(desk, talk, "/undo")


async def branched(desk: Desk, talk: str) -> None:
    await _command(desk, talk, "/branch elsewhere")


async def compacted(desk: Desk, talk: str) -> None:
    desk.play(plays)
    for n in range(3):
        await desk.say(talk, f"boat {n}: " + "it sails. " * 400)
    assert "compacted" in (await _command(desk, talk, "/compress")).lower()
    assert any(b"## Intent" in request.body for request in desk.provider.requests)


async def compacted_by_itself(desk: Desk, talk: str) -> None:
    desk.play(plays)
    for n in range(6):
        await desk.say(talk, f"boat {n}: " + "it sails. " * 400)
    assert any(b"## Intent" in request.body for request in desk.provider.requests)


async def compaction_undone(desk: Desk, talk: str) -> None:
    await compacted(desk, talk)
    await failed(desk, talk)
    await undone(desk, talk)


async def compacted_after_a_failure(desk: Desk, talk: str) -> None:
    await failed(desk, talk)
    await compacted(desk, talk)
    await failed(desk, talk)


WAYS: Sequence[Callable[[Desk, str], Awaitable[None]]] = (
    failed,
    failed_after_a_tool,
    stopped,
    rolled_back,
    interrupted,
    replaced,
    collected,
    empty,
    empty_for_ever,
    retried,
    undone,
    branched,
    compacted,
    compacted_by_itself,
    compaction_undone,
    compacted_after_a_failure,
)


#: Chat templates are the strictest; the other formats take turns with each other.
CASES = [(way, form) for n, way in enumerate(WAYS) for form in ("chat", FORMATS[1 + n % 2])]


@pytest.mark.parametrize(("way", "form"), CASES)
async def test_the_next_request_takes_turns_after(
    tmp_path: Path, way: Callable[[Desk, str], Awaitable[None]], form: Any
) -> None:
    async with open_desk(tmp_path, form, policy=CompactionPolicy(window=6_000)) as desk:
        talk = await desk.begin()
        await way(desk, talk)
        for text in ("and now?", "and then?"):
            desk.play(plays)
            accepted = await desk.engine.submit(text, target=local_route(talk))
            ended = await desk.end(accepted)
            assert ended.text == "an answer"
        assert [
            r.number for r in desk.provider.wait_until_settled() if r.outcome == "refused"
        ] == []
        assert await desk.check() == []


@pytest.mark.parametrize("form", FORMATS)
async def test_the_request_prefix_before_a_failed_turn_does_not_change(
    tmp_path: Path, form: Any
) -> None:
    async with open_desk(tmp_path, form) as desk:
        talk = await desk.begin()
        for way in (failed, stopped, empty_for_ever, failed):
            await way(desk, talk)
        desk.play(plays)
        await desk.say(talk, "and now?")
        key = "input" if form == "responses" else "messages"
        sent = [_bare(request.json or {}, key) for request in desk.provider.wait_until_settled()]
        for before, after in itertools.pairwise(sent):
            assert after[: len(before)] == before


def _bare(body: Mapping[str, Any], key: str) -> list[Any]:
    return list(body[key])
