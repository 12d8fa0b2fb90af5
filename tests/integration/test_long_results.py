"""Long results of tools: the whole is kept, the model reads it by range, and nothing is lost."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ToolReturn

from clew.agent.stored_results import MAX_STORED_BYTES, READ_TOOL, abridge_result, format_excerpt
from clew.agent.tool_results import MAX_RESULT_CHARS
from clew.core.ids import IdGenerator
from clew.engine.compaction import CompactionPolicy
from clew.engine.exports import ConversationExporter
from clew.engine.fsck import StoreChecker
from clew.engine.imports import ConversationImporter, open_section
from clew.store.opening import open_store
from clew.store.transactions import attachments
from clew.testing import Calls, Reply, ScriptedCall, Text
from tests.contract import invariants
from tests.exported import verified
from tests.failing.compacting import Plays, sent
from tests.failing.desk import FORMATS, open_desk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from clew.engine.fsck import FsckReport
    from clew.store.contract import Tx
    from clew.testing import ProviderRequest
    from tests.failing.desk import Desk, Format

#: Each line is unlike all others.
TEXT = "\n".join(f"line {n:05} of the ledger" for n in range(8_000))
NEEDLE = "line 04711 of the ledger"


def ledger() -> str:
    """A tool with a lot to say."""
    return TEXT


def listed() -> list[str]:
    """The same as a list."""
    return TEXT.splitlines()


def wrapped() -> ToolReturn[str]:
    """The same in a result with content of its own."""
    return ToolReturn(TEXT, content="it is the ledger")


def failing() -> str:
    """The same as an error."""
    raise ValueError(TEXT)


def _results(request: ProviderRequest) -> list[str]:
    return [result.text for message in request.messages for result in message.results]


def _pointer(text: str) -> tuple[str, int]:
    found = re.search(rf'{READ_TOOL}\("(.+?)", start=(\d+)\)', text)
    assert found is not None, text[:200]
    return found[1], int(found[2])


def _reads(tool: str) -> Plays:
    """Call a tool, then read what was left out of its result, and answer with the needle."""

    def turn(request: ProviderRequest) -> Reply:
        results = _results(request)
        if not results:
            return Calls([ScriptedCall(tool)])
        if NEEDLE in results[-1]:
            return Text("found " + NEEDLE)
        call_id, start = _pointer(results[0])
        if len(results) > 1:
            more = re.search(r"the next begins at (\d+)", results[-1])
            assert more is not None, results[-1][:200]
            start = int(more[1])
        return Calls(
            [ScriptedCall(READ_TOOL, {"call_id": call_id, "start": start, "length": 40_000})]
        )

    return Plays(turn=turn)


@pytest.mark.parametrize("tool", [ledger, listed, wrapped, failing])
async def test_the_middle_of_a_long_result_can_be_read(
    tmp_path: Path, tool: Callable[[], Any]
) -> None:
    plays = _reads(str(getattr(tool, "__name__", "")))
    agent: Agent[Any, Any] = Agent(tools=[tool])
    async with open_desk(tmp_path, "chat", agent=agent) as desk:
        talk = await desk.begin()
        desk.play(plays)
        told = await desk.say(talk, "where is 4711?")
        assert told.text == "found " + NEEDLE
        assert all(len(result) <= MAX_RESULT_CHARS + 300 for result in _results(plays.turns[-1]))
        assert await desk.check() == []
        report = await _examined(desk, tmp_path)
        assert report.findings == ()


def _silent(_: str) -> None:
    """Discard the progress."""


async def _examined(desk: Desk, home: Path) -> FsckReport:
    fsck = StoreChecker(
        desk.store, url=f"sqlite:///{home}/clew.db", home=home, say=_silent, processes=1
    )
    return await fsck.find_problems()


@pytest.mark.parametrize("form", FORMATS)
async def test_the_list_of_tools_stays_the_same_with_and_without_long_results(
    tmp_path: Path, form: Format
) -> None:
    plays = _reads("ledger")
    async with open_desk(tmp_path, form, agent=Agent(tools=[ledger])) as desk:
        talk = await desk.begin()
        desk.play(plays)
        await desk.say(talk, "where is 4711?")
    lists = [str(request.raw["tools"]) for request in plays.turns]
    assert len(set(lists)) == 1
    assert READ_TOOL in lists[0]


async def test_without_tools_none_is_offered(tmp_path: Path) -> None:
    async with open_desk(tmp_path, "chat") as desk:
        plays = Plays()
        await desk.begin()
        desk.play(plays)
        await desk.say("talk1", "hello")
    assert "tools" not in plays.turns[0].raw


async def test_after_a_compaction_and_a_restart_it_can_still_be_read(tmp_path: Path) -> None:
    """Results that compaction shortened or cleared are in the log, and the model can read them."""

    def page() -> str:
        """Shorter than what is kept apart, and half of the window."""
        return "\n".join(f"page {n:05} of the book" for n in range(900))

    first = Plays(turn=lambda r: Text("read") if r.new_results else Calls([ScriptedCall("page")]))
    policy = CompactionPolicy(window=12_000)
    agent = Agent(tools=[page])
    async with open_desk(tmp_path, "chat", agent=agent, policy=policy) as desk:
        talk = await desk.begin()
        desk.play(first)
        for _ in range(3):
            assert (await desk.say(talk, "read the page")).text == "read"

    def again(request: ProviderRequest) -> Reply:
        results = _results(request)
        if "page 00450 of the book" in results[-1]:
            return Text("found it")
        call_id = re.findall(rf'{READ_TOOL}\(\\?"(.+?)\\?"', sent(request))[0]
        return Calls(
            [ScriptedCall(READ_TOOL, {"call_id": call_id, "start": 8_000, "length": 6_000})]
        )

    async with open_desk(tmp_path, "chat", agent=agent, policy=policy) as desk:
        desk.play(Plays(turn=again))
        desk.ids[talk] = await desk.engine.resolve_name(talk)
        assert (await desk.say(talk, "what is on page 450?")).text == "found it"
        assert await desk.check() == []


async def test_a_branch_an_export_and_a_delete_know_the_whole_result(tmp_path: Path) -> None:
    async with open_desk(tmp_path, "chat", agent=Agent(tools=[ledger])) as desk:
        talk = await desk.begin()
        plays = _reads("ledger")
        desk.play(plays)
        await desk.say(talk, "where is 4711?")
        call_id, _ = _pointer(_results(plays.turns[-1])[0])
        source = desk.ids[talk]
        copy = await desk.engine.sessions.branch_conversation(source)
        exports = ConversationExporter(desk.store)
        export = b"".join(
            [line async for line in exports.iter_lines(await exports.resolve_names([source]))]
        )
        await desk.engine.delete_conversation(source, at_once=True)
        await desk.until(lambda: desk.store.read(_count, source))
        assert await desk.store.read(attachments.find_tool_result, copy, call_id) == TEXT.encode()
        assert (await _examined(desk, tmp_path)).findings == ()
    found = verified(export)
    assert found.findings == []
    home = tmp_path / "other"
    async with await open_store("sqlite:///clew.db", home=home) as store:
        async with ConversationImporter(
            store, IdGenerator(lambda: 1), version="0"
        ).register_owner() as imports:
            for outline in found.conversations:
                await imports.import_conversation(open_section(io.BytesIO(export), outline))
        assert await store.read(attachments.find_tool_result, source, call_id) == TEXT.encode()
        assert await store.read(invariants.check) == []


def _count(t: Tx, conversation: str) -> bool:
    """Return whether no attachment of a conversation is left."""
    left = t.fetch_one("SELECT count(*) FROM attachment WHERE conversation_id = $1", conversation)
    return left is not None and left[0] == 0


@pytest.mark.parametrize(("length", "most"), [(200, 50), (100_000, 60_000)])
def test_a_result_that_is_shortened_again_still_says_how_to_read_it(length: int, most: int) -> None:
    text = "".join(str(n % 10) for n in range(length))
    once = abridge_result(text, most, call_id="call_1")
    twice = abridge_result(once, most // 2, call_id="other")
    for short, half in ((once, most // 2), (twice, most // 4)):
        assert _pointer(short) == ("call_1", half)
        assert f"{length - 2 * half} of {length} characters left out" in short
        assert short.startswith(text[:half])
        assert short.endswith(text[-half:])
    assert abridge_result(twice, most, call_id="other") == twice


@pytest.mark.parametrize(
    ("start", "length", "said"),
    [
        (0, 4, "[characters 0 to 4 of 10; the next begins at 4]\n0123"),
        (8, 100, "[characters 8 to 10 of 10]\n89"),
        (-5, 2, "[characters 0 to 2 of 10; the next begins at 2]\n01"),
        (50, 2, "[characters 10 to 10 of 10]\n"),
    ],
)
def test_a_range_says_where_it_lies(start: int, length: int, said: str) -> None:
    assert format_excerpt("0123456789", start, length) == said


def test_the_limit_is_that_of_an_attachment() -> None:
    assert MAX_STORED_BYTES == 8_000_000
