"""Input at the terminal is sent once, and decides nothing by accident."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from clew.config.settings import CompactionSettings, ToolsSettings
from clew.core.entry import Role
from clew.testing import Endless, FakeProvider, Slow, Text
from clew.testing.provider import Calls, ScriptedCall, echo, reply_by_user_text, reply_in_sequence
from clew.tui.screens.approval import ApprovalScreen
from clew.tui.state.typing_guard import MIN_PAUSE
from clew.tui.widgets.prompt import Prompt
from tests.contract.lifecycle.doubles import SUMMARY
from tests.integration.api_server import running, serving, settings_for
from tests.integration.rpc_clients import over_socket
from tests.tui import asking_tools
from tests.tui.terminal_session import at_server, at_terminal
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    from clew.testing import ProviderRequest, Reply
    from tests.integration.api_server import Server
    from tests.tui.terminal_session import TerminalSession

SENTENCE = "actually, no, do not do that"
#: Longer than any preview, with blanks that must not be squeezed, and its sting at the end.
COMMAND = "red " * 120 + "  ;\trm -rf ~\nnew\x1b[2Kline\u202etxt.exe "


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    asking_tools.ran.clear()
    with FakeProvider(echo) as fake:
        yield fake


@asynccontextmanager
async def person(
    tmp_path: Path, provider: FakeProvider
) -> AsyncGenerator[tuple[TerminalSession, Server]]:
    settings = settings_for(tmp_path, provider=provider)
    settings = replace(settings, tools=ToolsSettings(modules=("tests.tui.asking_tools",)))
    async with running(settings) as server, at_server(server, tmp_path) as session:
        yield session, server


async def said(server: Server) -> list[str]:
    """Return the person's messages in the store, in order."""
    conversation = await server.engine.resolve_name("talk")
    entries = await server.engine.read_entries(conversation, after=0, limit=500)
    return [entry.text for entry in entries if entry.role is Role.USER]


async def _is_said(server: Server, text: str) -> bool:
    return text in await said(server)


def prompt(session: TerminalSession) -> str:
    return session.app.screen_stack[0].query_one(Prompt).text


async def test_each_enter_sends_what_stands_there_and_never_twice(
    tmp_path: Path, provider: FakeProvider
) -> None:
    async with person(tmp_path, provider) as (session, server):
        session.press("m", "enter", "enter")
        session.press("first", "enter", "second", "enter", "enter")
        session.press("/status", "enter", "third", "enter")
        session.press("into it", "ctrl+s", "ctrl+s")
        await session.see("echo: third")
        # It may have scrolled away.
        await wait_until(lambda: _is_said(server, "into it"), "it to be stored")
        found = await said(server)
        # A steering message is stored before waiting ones.
        assert [each for each in found if each != "into it"] == ["m", "first", "second", "third"]
        assert found.count("into it") == 1
        await session.same()


async def test_a_message_sent_while_the_server_is_away_is_shown_and_sent_once(
    tmp_path: Path, provider: FakeProvider
) -> None:
    settings = settings_for(tmp_path, provider=provider)
    async with running(settings) as server, AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(server.engine, settings))
        settings = replace(settings, api=replace(settings.api, port=int(url.rpartition(":")[2])))
        async with at_terminal(over_socket(replace(server, url=url)), tmp_path) as session:
            session.say("one")
            await session.see("echo: one")
            await stack.aclose()
            await session.see("the server has stopped")
            session.press("buy milk", "enter", "enter", "call Bob", "enter", "half a")
            await session.see("buy milk  sent once the server is back", "call Bob  sent once")
            assert prompt(session) == "half a"
            await session.same()
            async with serving(server.engine, settings):
                await session.see("echo: buy milk", "echo: call Bob")
                await session.gone("sent once")
                await session.same()
                assert await said(server) == ["one", "buy milk", "call Bob"]
                assert prompt(session) == "half a"


async def test_a_refused_message_comes_back_before_later_input(
    tmp_path: Path, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "big.bin").write_bytes(bytes(9_000_000))
    async with person(tmp_path, provider) as (session, _):
        session.press('see @"big.bin" ', "enter", 'and @"big.bin" ', "enter", "typed since")
        await session.see("big.bin has 9,000,000 bytes")
        await wait_until(lambda: not session.app.controller.outbox.unsent, "both to come back")
        assert prompt(session) == 'see @"big.bin" \nand @"big.bin" \ntyped since'
        session.press("!")
        await session.see("typed since!")
        await session.same()
    assert provider.requests == []


async def test_typing_on_approves_nothing_wherever_the_question_stands(
    tmp_path: Path, provider: FakeProvider
) -> None:
    pay = Calls([ScriptedCall("run", {"command": "ls"})])
    provider.script = reply_by_user_text({"go": pay}, default=echo)
    async with person(tmp_path, provider) as (session, server):
        session.say("go")
        await session.see("Waiting for your approval: run", "F7")
        session.press(SENTENCE)
        await session.see(SENTENCE)
        session.press("ctrl+a", "ctrl+k", "f7")
        await session.see("Allow this tool call?")
        await session.same()
        # In haste, and after a pause whose first letter would choose.
        for pause in (0, MIN_PAUSE):
            session.clock.now += pause
            session.press(SENTENCE, "enter", "y", "enter", "enter", "y")
            await session.see("That was quick")
        session.paste("y\r")
        session.press("q")
        await session.see("Choose by letter")
        assert asking_tools.ran == []
        (open_,) = await server.engine.list_approvals(await server.engine.resolve_name("talk"))
        assert open_.state.value == "open"
        # On purpose, and once.
        session.clock.now += MIN_PAUSE
        session.press("y")
        await session.see("Enter: allow run")
        session.press("enter", "enter", "enter", "y", "enter")
        await wait_until(lambda: asking_tools.ran == ["ls"], "the call to run")


async def test_a_question_shows_all_of_what_would_run_to_the_letter(
    tmp_path: Path, provider: FakeProvider
) -> None:
    provider.script = reply_in_sequence(
        [Calls([ScriptedCall("run", {"command": COMMAND})]), Text("as you say")]
    )
    async with person(tmp_path, provider) as (session, _):
        await session.resize(40, 12)
        session.say("go")
        await session.see("Waiting for")
        session.press("f7")
        await session.see("Allow this tool call?", "command:")
        session.clock.now += MIN_PAUSE
        session.press("y")
        await session.see("There is more than was")
        shown = ""
        for _ in range(60):
            await session.same()
            shown += session.text
            if "    ·" in session.text:
                break
            session.press("down")
        for text in ("red red red red", "   ;\\tr", "m -rf ~↵", "new\\x1b[2Kline\\u202etxt.exe"):
            assert text in shown
        await session.decide("b")
        await session.see("Why not?")
        session.press("escape")
        await session.gone("Why not?")
        session.press("f7")
        await session.see("Allow this tool call?")
        await session.decide("b")
        await session.see("Why not?")
        session.press("y enter", "\x13")
        await session.see("⊘ run(", "as you say")
        assert "y enter" in provider.requests[-1].body.decode()
        await session.same()
        assert asking_tools.ran == []


async def test_a_call_can_be_allowed_from_now_on(tmp_path: Path, provider: FakeProvider) -> None:
    call = Calls([ScriptedCall("run", {"command": "one"})])
    provider.script = reply_in_sequence([call, Text("first"), call, Text("second")])
    async with person(tmp_path, provider) as (session, _):
        session.say("go")
        await session.see("Waiting for")
        session.press("f7")
        await session.see("(H and W allow run: any call)", "W always")
        await session.decide("w")
        await session.see("first")
        session.say("again")
        await session.see("second")
        assert asking_tools.ran == ["one", "one"]


async def test_all_allows_what_was_listed_and_nothing_that_came_after(
    tmp_path: Path, provider: FakeProvider
) -> None:
    calls = Calls([ScriptedCall("run", {"command": each}) for each in ("one", "two")])
    later = Calls([ScriptedCall("run", {"command": "three"})])
    provider.script = reply_in_sequence([calls, later, Text("done")])
    async with person(tmp_path, provider) as (session, _):
        session.say("go")
        await session.see("and 1 more")
        session.press("f7")
        await session.see("1. run", "2. run", "A allow all 2: run, run")
        session.press("tab")
        await session.see("▸ 2. run", "Y allow call 2, run")
        session.clock.now += MIN_PAUSE
        session.press("a", "enter", "a", "enter", "enter")
        await session.see("approval: run", '{"command":"three"}')
        assert sorted(asking_tools.ran) == ["one", "two"]
        session.press("/approve", "enter")
        await session.see("Allow this tool call?", "three")
        await session.decide("n")
        await session.see("⊘ run(", "done")
        assert sorted(asking_tools.ran) == ["one", "two"]


async def test_a_question_whose_calls_vanish_while_it_opens_closes(
    tmp_path: Path, provider: FakeProvider
) -> None:
    provider.script = reply_in_sequence([Calls([ScriptedCall("run", {"command": "one"})])])
    async with person(tmp_path, provider) as (session, _):
        session.say("go")
        await session.see("Waiting for your approval: run")
        app = session.app
        screen = ApprovalScreen(lambda: session.clock.now, app.controller.view.approvals)
        left: list[object] = []

        def open_screen() -> None:
            app.push_screen(screen, left.append)
            # The connection is lost before the screen is mounted.
            screen.show_calls(())

        app.call_later(open_screen)
        await wait_until(lambda: left == [None], "the screen to close")
        await wait_until(lambda: len(app.screen_stack) == 1, "the way back")
        session.press("still here")
        await session.see("still here")
        assert asking_tools.ran == []


async def test_a_question_that_is_answered_elsewhere_closes(
    tmp_path: Path, provider: FakeProvider
) -> None:
    provider.script = reply_in_sequence(
        [Calls([ScriptedCall("run", {"command": "one"})]), Text("done")]
    )
    async with person(tmp_path, provider) as (session, server):
        session.say("go")
        await session.see("Waiting for your approval")
        session.press("f7")
        await session.see("Allow this tool call?")
        (asked,) = await server.engine.list_approvals(await server.engine.resolve_name("talk"))
        await server.engine.answer_approval(asked.id, yes=False, by="somebody")
        await session.gone("Allow this tool call?")
        assert not isinstance(session.app.screen, ApprovalScreen)
        session.press("f7")
        await session.see("No tool call is waiting for approval.")


async def test_a_key_that_is_pressed_again_does_nothing_more(
    tmp_path: Path, provider: FakeProvider
) -> None:
    def slowly(request: ProviderRequest) -> Reply:
        if "You keep the memory" in request.last_user_text:
            return Slow(Text(SUMMARY), 0.5)
        return Text("it flows " * 60)

    provider.script = slowly
    settings = settings_for(tmp_path, provider=provider)
    settings = replace(
        settings,
        model=replace(settings.model, context_window=10_000),
        compaction=CompactionSettings(enabled=False),
    )
    async with running(settings) as server:
        for number in range(6):
            await server.say(f"{number} it flows " + "and flows. " * 160)
        async with at_server(server, tmp_path) as session:
            session.press("f4")
            await session.see("messages would become a summary")
            session.press("enter", "enter", "enter", "ctrl+u", "enter")
            await session.see("summarised: ")
            asked = [each.body.decode() for each in provider.requests]
            assert sum("You keep the memory" in each for each in asked) == 1
            # One screen at a time, and one way back.
            session.press("f2", "f2", "f3", "f2")
            await session.see("Conversations")
            assert len(session.app.screen_stack) == 2
            session.press("escape")
            await session.gone("Conversations")
            session.press("tab")
            await session.see("┃ it flows")
            session.press("r", "r", "r")
            await session.see("Rewind to this message?")
            await session.decide("n")
            await session.gone("Rewind to this message?")
            await session.gone("┃ it flows")
            before = await said(server)
            session.press("tab")
            await session.see("┃ it flows")
            session.press("b", "b", "b")
            await session.see("This is the branch")
            listed = await server.http.get("/api/conversations")
            assert len(listed.json()["items"]) == 2
            assert await said(server) == before


async def test_a_paste_keeps_its_lines_and_order_in_every_field(
    tmp_path: Path, provider: FakeProvider
) -> None:
    pasted = "\x1b[31mone\x1b[0m\x1b[13;1utwo\x1b[13;1u  three\r\nfour"
    text = "one\ntwo\n  three\nfour"
    provider.script = reply_by_user_text({"go on": Endless(interval=0.1)}, default=echo)
    async with person(tmp_path, provider) as (session, server):
        session.press("<")
        session.paste(pasted)
        session.press(">", "enter")
        await session.see("echo: <one", "four>")
        assert await said(server) == [f"<{text}>"]
        # In a one-line field, line breaks become spaces.
        session.press("f2")
        await session.see("Conversations")
        session.paste(pasted)
        await session.see("one two   three four")
        session.press("escape")
        await session.gone("Conversations")
        # A message that waits is changed.
        session.say("go on")
        await session.see("again")
        session.say("later")
        await session.see("1. later")
        session.press("f6")
        await session.see("Waiting messages")
        session.press("enter")
        await session.see("Change: later")
        session.paste(pasted)
        session.press("ctrl+s")
        await session.see("1. laterone two three four")
        await session.gone("Change: later")
        session.press("escape")
        await session.see("echo: laterone")
        assert (await said(server))[-1] == f"later{text}"
        await session.same()
