"""The terminal UI, screen by screen, before a real engine with the fake provider."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from textual.events import Paste

from bench.lasting import lengthened
from clew.cli.common import CliContext
from clew.cli.open_tui import open_tui
from clew.config.settings import CompactionSettings, ToolsSettings
from clew.errors import ClewError
from clew.testing import Endless, FakeProvider, Text
from clew.testing.provider import Calls, ScriptedCall, echo, reply_by_user_text, reply_in_sequence
from clew.tui.app import TerminalApp
from clew.tui.transports import ConnectionRefused
from clew.tui.widgets.completion_menu import CompletionMenu
from clew.tui.widgets.prompt import Prompt
from clew.tui.widgets.transcript import Transcript
from tests.contract.lifecycle.doubles import SUMMARY
from tests.integration.api_server import running, serving, settings_for
from tests.integration.rpc_clients import over_socket
from tests.tui.pictures import make
from tests.tui.screen import Seen, at, before
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from clew.core.entry import Entry
    from clew.testing import ProviderRequest, Reply
    from clew.tui.transports import FrameConnection
    from tests.integration.api_server import Server

DOCS = Path(__file__).parents[2] / "docs"
MARKDOWN = (
    "# Theseus\n\nHe had a **thread**:\n\n- red\n- long\n\n```python\nfor turn in maze:\n```\n"
)


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(echo) as fake:
        yield fake


@asynccontextmanager
async def person(tmp_path: Path, provider: FakeProvider) -> AsyncGenerator[tuple[Seen, Server]]:
    settings = settings_for(tmp_path, provider=provider)
    settings = replace(settings, tools=ToolsSettings(modules=("tests.tui.tools",)))
    async with running(settings) as server, at(server, tmp_path) as seen:
        yield seen, server


async def _entries(server: Server) -> Sequence[Entry]:
    return await server.engine.read_entries(
        await server.engine.resolve_name("talk"), after=0, limit=100
    )


async def test_a_message_is_answered_in_markdown_and_remembered(
    tmp_path: Path, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    provider.script = reply_in_sequence(
        [Text(MARKDOWN, chunks=8, thinking="let me see")], default=echo
    )
    (tmp_path / "notes.txt").write_text("the minotaur")
    async with person(tmp_path, provider) as (seen, _):
        await seen.say("hello")
        await seen.see("Theseus", "He had a thread:", "• red", "for turn in maze:", "thinking ▸")
        assert "**" not in seen.text
        assert "# Theseus" not in seen.text
        # Several lines, and what was typed before.
        await seen.type("one")
        await seen.pilot.press("ctrl+j")
        await seen.say("two")
        await seen.see("echo: one")
        prompt = seen.app.screen.query_one(Prompt)
        await seen.pilot.press("up", "up", "up")
        assert prompt.text == "hello"
        await seen.pilot.press("down", "down", "down")
        assert prompt.text == ""
        # Commands and files are offered while they are typed.
        await seen.type("/stat")
        await seen.see("/status")
        # Text that was typed meanwhile is not completed.
        assert seen.app.screen.query_one(CompletionMenu).apply_completion("/status now") is None
        await seen.pilot.press("enter")
        await seen.see("hello", "openai-chat:fake-model")
        await seen.type("see @not")
        await seen.see("notes.txt")
        await seen.pilot.press("tab")
        assert prompt.text == "see @notes.txt"
        await seen.pilot.press("enter")
        await seen.see("[file", "notes.txt")
        # The model reads what is in it.
        read = "the minotaur\\n[end of notes.txt]"
        await wait_until(lambda: read in provider.requests[-1].body.decode())
        (tmp_path / "big.bin").write_bytes(bytes(9_000_000))
        await seen.type("see @big.bin")
        await seen.pilot.press("escape", "enter")
        await seen.see("big.bin has 9,000,000 bytes; the limit for a file is")
        await seen.pilot.press("ctrl+a", "ctrl+k")
        await seen.say("/nosuch")
        await seen.see("/help")


async def test_while_an_answer_is_made_messages_wait_are_changed_and_it_is_stopped(
    tmp_path: Path, provider: FakeProvider
) -> None:
    provider.script = reply_by_user_text({"go on": Endless(interval=0.1)}, default=echo)
    async with person(tmp_path, provider) as (seen, _):
        await seen.say("go on")
        await seen.see("again again", "Answering…", "Esc stop")
        await seen.pilot.press("f1")
        await seen.see("stop the answer; its text so far")
        await seen.pilot.press("escape")
        await seen.say("first")
        await seen.see("1. first")
        await seen.say("second")
        await seen.see("2. second")
        await seen.type("third")
        await seen.pilot.press("ctrl+s")
        await seen.see("3. third")
        await seen.pilot.press("f6")
        await seen.see("Waiting messages", "third  steer")
        await seen.pilot.press("enter")
        await seen.see("Change: first")
        await seen.type("ly")
        await seen.pilot.press("ctrl+s")
        await seen.see("1. firstly")
        await seen.pilot.press("f6")
        await seen.see("Waiting messages")
        await seen.pilot.press("down", "ctrl+d")
        await seen.gone("2. second")
        await seen.pilot.press("escape")
        await seen.see("firstly", "third", "echo: ")
        assert "second" not in seen.text


async def test_a_tool_waits_for_a_word_runs_and_its_output_opens(
    tmp_path: Path, provider: FakeProvider
) -> None:
    calls = Calls([ScriptedCall("look", {"where": "crete"}), ScriptedCall("pay", {"amount": 3})])
    provider.script = reply_in_sequence([calls, Text("done")], default=echo)
    async with person(tmp_path, provider) as (seen, _):
        await seen.say("please")
        await seen.see("approval: pay", 'pay({"amount":3})', '✓ look(where="crete")', "○ pay")
        await seen.pilot.press("f7")
        await seen.see("Allow this tool call?", "1. pay", "amount:", "Choose by letter")
        await seen.decide("y")
        await seen.see("✓ pay(amount=3)", 'look(where="crete") ▸ 3 lines', "done")
        assert "approval: pay" not in seen.text
        await seen.pilot.press("tab")
        assert isinstance(seen.app.focused, Transcript)
        await seen.pilot.press("a")
        await seen.see("│ a thread", "│ paid 3")
        await seen.pilot.press("home", "down", "enter")
        await seen.gone("│ a thread")
        await seen.pilot.press("escape")
        assert isinstance(seen.app.focused, Prompt)


async def test_conversations_are_searched_begun_opened_and_deleted(
    tmp_path: Path, provider: FakeProvider
) -> None:
    async with person(tmp_path, provider) as (seen, server):
        for n in range(3):
            await server.say(f"about topic {n}", f"old-{n}")
        await seen.say("/sessions")
        await seen.see("Conversations", "old-2", "about topic 0")
        await seen.type("topic 1")
        await seen.gone("old-2")
        await seen.pilot.press("enter")
        await seen.gone("Conversations")
        await seen.see("echo: about topic 1")
        await seen.pilot.press("f2")
        await seen.see("Conversations")
        await seen.pilot.press("ctrl+n")
        await seen.gone("echo: about topic 1")
        await seen.say("afresh")
        await seen.see("echo: afresh")
        await seen.pilot.press("f2")
        await seen.see("about topic 2")
        await seen.type("topic 2")
        await seen.gone("old-1")
        await seen.pilot.press("ctrl+d")
        await seen.see("Delete this conversation")
        await seen.decide("y")
        await seen.see("deleted: about topic 2", "brings it back")
        await seen.pilot.press("f2")
        await seen.see("Conversations")
        await seen.gone("old-2")
        await seen.pilot.press("ctrl+r")
        await seen.see("brought back: about topic 2", "echo: about topic 2")


async def test_lists_of_sessions_models_and_keys_are_shown(
    tmp_path: Path, provider: FakeProvider
) -> None:
    async with person(tmp_path, provider) as (seen, _):
        await seen.say("afresh")
        await seen.see("echo: afresh")
        await seen.pilot.press("f3")
        await seen.see("Sessions of this conversation", "Started")
        await seen.pilot.press("escape", "f5")
        await seen.see("Model of this conversation", "● openai-chat:fake-model")
        await seen.pilot.press("enter")
        await seen.see("answers from the next message on")
        await seen.pilot.press("f1")
        await seen.see("earlier texts")
        await seen.pilot.press("escape")
        await seen.say("/title The thread")
        await seen.see("The thread  openai-chat")


async def test_a_message_that_is_pointed_at_is_gone_back_to_or_branched_from(
    tmp_path: Path, provider: FakeProvider
) -> None:
    async with person(tmp_path, provider) as (seen, server):
        for text in ("one", "two", "three"):
            await seen.say(text)
            await seen.see(f"echo: {text}")
        await seen.pilot.press("tab", "home", "down", "b")
        await seen.see("This is the branch", "▌ one", "echo: one")
        assert "echo: two" not in seen.text
        await seen.pilot.press("tab", "home", "r")
        await seen.see("This message is in the original")
        await seen.say("else")
        await seen.see("echo: else")
        assert "echo: three" not in seen.text
        await seen.pilot.press("f2")
        await seen.see("Conversations")
        await seen.pilot.press("down", "enter")
        await seen.see("echo: three")
        async with at(server, tmp_path) as other:
            await other.see("echo: three")
            await seen.pilot.press("tab", "up", "r")
            await seen.see("Rewind to this message?")
            await seen.decide("y")
            await seen.see("rewound", "taken back ▸ three", "taken back ▸ echo: three")
            # So does who only looks on, and who comes later.
            await other.see("taken back ▸ three", "taken back ▸ echo: three")
        assert seen.app.screen.query_one(Prompt).text == "three"
        await seen.pilot.press("ctrl+a", "ctrl+k")
        await seen.say("four")
        await seen.see("echo: four")
        async with at(server, tmp_path) as other:
            await other.see("echo: two", "taken back ▸ echo: three", "echo: four")
        # Sessions: the chosen one is gone to.
        await seen.pilot.press("f3")
        await seen.see("Rewound to an earlier message")
        # Above it stands the branch, then the first session.
        await seen.pilot.press("up", "up", "enter")
        await seen.see("session 1 begins here")
        assert isinstance(seen.app.focused, Transcript)
        await seen.see("┃ one")
        await seen.pilot.press("f3", "enter")
        await seen.see("session 2 begins here", "┃ four")
        await seen.pilot.press("escape")


async def test_a_summary_is_made_and_taken_back_from_the_screen(
    tmp_path: Path, provider: FakeProvider
) -> None:
    def summarising(request: ProviderRequest) -> Reply:
        asked = request.last_user_text
        return Text(SUMMARY) if "You keep the memory" in asked else Text(f"echo: {asked[:10]}")

    provider.script = summarising
    settings = settings_for(tmp_path, provider=provider)
    settings = replace(
        settings,
        model=replace(settings.model, context_window=10_000),
        compaction=CompactionSettings(enabled=False),
    )
    async with running(settings) as server:
        for number in range(8):
            await server.say(f"{number} it flows " + "and flows. " * 160)
        async with at(server, tmp_path) as seen:
            await seen.pilot.press("f4")
            await seen.see("messages would become a summary", "goes ")
            await seen.pilot.press("pagedown")
            await seen.see("stays ")
            await seen.type("the river")
            await seen.pilot.press("enter")
            await seen.see("summarised: ", "tokens became")
            await seen.pilot.press("f3")
            await seen.see("Earlier messages summarised")
            await seen.pilot.press("escape", "f4")
            await seen.see("messages would become", "Esc closes")
            await seen.pilot.press("ctrl+u")
            await seen.see("the compaction was undone")
            await seen.pilot.press("f4")
            await seen.see("messages would become")
            await seen.pilot.press("ctrl+u")
            await seen.see("there is no compaction to undo")
            await seen.pilot.press("escape")


async def test_a_theme_stays_and_a_paste_of_many_lines_is_one_message(
    tmp_path: Path, provider: FakeProvider
) -> None:
    pasted = "\n".join(f"line {number} of what was copied" for number in range(2000))
    async with person(tmp_path, provider) as (seen, server):
        await seen.say("**bold** words")
        await seen.see("echo: bold words")
        for theme in ("textual-light", "nord"):
            seen.app.theme = theme
            await seen.see("echo: bold words", "Type a message")
        seen.app.post_message(Paste(pasted.replace("\n", "\r\n") + "\r\n"))
        await seen.see("[pasted 2,000 lines]")
        assert seen.app.screen.query_one(Transcript).size.height > 5
        await seen.pilot.press("enter")
        await seen.see("line 1999 of what was copied\n")
        async with at(server, tmp_path) as other:
            assert other.app.theme == "nord"
        (said,) = [e.text for e in await _entries(server) if e.seq == 3]
    assert said.strip() == pasted


async def test_a_fault_of_the_screen_is_a_sentence_for_people_and_a_record_for_us(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    @asynccontextmanager
    async def never() -> AsyncGenerator[FrameConnection]:
        raise ConnectionRefused("the store is of a newer clew")
        yield

    async def sit(app: TerminalApp) -> None:
        async with app.run_test() as pilot:
            seen = Seen(app, pilot)
            # A refused client shows the reason, whatever the user does.
            await seen.see("the store is of a newer clew")
            await seen.say("hello")
            await seen.see("the store is of a newer clew")
            await pilot.press("f4")
            await seen.see("Esc closes")
            await pilot.press("escape", "f5", "f6", "escape", "f3")
            app.call_later(lambda: 1 / 0)
            await pilot.pause(0.1)

    with pytest.raises(ZeroDivisionError):
        await sit(TerminalApp(never, folder=tmp_path))
    assert "ZeroDivisionError" in (tmp_path / "logs" / "terminal.log").read_text()
    _, said = capsys.readouterr()
    assert "start clew again" in " ".join(said.split())
    assert "Traceback" not in said


async def test_it_reconnects_after_a_restart_and_sends_waiting_messages_once(
    tmp_path: Path, provider: FakeProvider
) -> None:
    settings = settings_for(tmp_path, provider=provider)
    async with running(settings) as server, AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(server.engine, settings))
        settings = replace(settings, api=replace(settings.api, port=int(url.rpartition(":")[2])))
        here = replace(server, url=url)
        async with before(over_socket(here), tmp_path) as seen:
            await seen.say("one")
            await seen.see("echo: one")
            await stack.aclose()
            await seen.see("the server has stopped")
            await seen.say("two")
            async with serving(server.engine, settings):
                await seen.see("echo: two")
                assert seen.text.count("echo: one") == seen.text.count("echo: two") == 1


async def test_of_a_long_conversation_the_end_is_seen_at_once_and_the_rest_on_the_way_back(
    tmp_path: Path, provider: FakeProvider
) -> None:
    settings = settings_for(tmp_path, provider=provider)
    async with running(settings) as server:
        for number in range(5):
            await server.say(f"message {number}")
        conversation = await server.engine.resolve_name("talk")
    lengthened(tmp_path / "clew.db", conversation, few=10, many=300)
    async with running(settings) as server, at(server, tmp_path) as seen:
        await seen.see("echo: message 4")
        assert len(seen.app.controller.view.blocks) < 100
        await seen.pilot.press("tab")
        for _ in range(40):
            await seen.pilot.press("home")
            await seen.pilot.pause(0.05)
            if "message 0" in seen.text and seen.app.controller.view.first == 1:
                break
        assert [block.seq for block in seen.app.controller.view.blocks] == list(range(1, 301))


async def test_the_pictures_in_the_docs_can_be_made(tmp_path: Path) -> None:
    """Not compared to the letter: fonts and colours are those of the library's version."""
    (tmp_path / "home").mkdir()
    await make(tmp_path, home=tmp_path / "home")
    there, pages = _kept()
    assert _names(tmp_path) == there
    assert "ball&#160;of&#160;thread" in (tmp_path / "terminal-chat.svg").read_text()
    assert [name for name in there if name not in pages] == []


def _kept() -> tuple[list[str], str]:
    """The pictures that are kept, and the page that shows them."""
    page = (DOCS / "how-to" / "terminal.md").read_text(encoding="utf-8")
    return _names(DOCS / "images"), page


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("terminal-*.svg"))


def test_a_terminal_without_screens_gets_a_sentence_with_the_fix(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "textual", None)
    with pytest.raises(ClewError, match=r"pip install 'clew-gateway\[tui\]'"):
        open_tui(CliContext(home=tmp_path, flags={}))
    monkeypatch.undo()
    monkeypatch.setenv("TERM", "dumb")
    with pytest.raises(ClewError, match="clew chat"):
        open_tui(CliContext(home=tmp_path, flags={}))
