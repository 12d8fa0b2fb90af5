"""Every screen of the terminal UI, judged by the cells that a terminal shows."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from clew.config.settings import ToolsSettings
from clew.testing import Endless, FakeProvider, Text
from clew.testing.provider import Calls, ScriptedCall, echo, reply_by_user_text
from tests.integration.api_server import running, settings_for
from tests.tui.terminal_session import at_server
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    from tests.integration.api_server import Server
    from tests.tui.terminal_session import TerminalSession

SIZES = [(80, 24), (40, 10)]
#: Each number of colours once.
COLOURS = {(80, 24): "truecolor", (40, 10): ""}


def _paragraphs(count: int) -> str:
    return "\n\n".join(f"Paragraph {n} of a long answer, 日本 and `code`." for n in range(count))


#: A screen and more; and several screens.
HIGH, LONG = _paragraphs(14), _paragraphs(40)


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(echo) as fake:
        yield fake


@pytest.fixture
def colours(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", COLOURS[size])


@asynccontextmanager
async def person(
    tmp_path: Path, provider: FakeProvider, size: tuple[int, int]
) -> AsyncGenerator[tuple[TerminalSession, Server]]:
    settings = settings_for(tmp_path, provider=provider)
    settings = replace(settings, tools=ToolsSettings(modules=("tests.tui.tools",)))
    async with running(settings) as server, at_server(server, tmp_path, size=size) as session:
        yield session, server


@pytest.mark.usefixtures("colours")
@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_the_end_of_an_answer_stands_on_the_screen_while_it_grows_and_afterwards(
    tmp_path: Path, provider: FakeProvider, size: tuple[int, int]
) -> None:
    provider.script = reply_by_user_text(
        {"tell me": Text(HIGH), "go on": Endless(interval=0.2)}, default=echo
    )
    async with person(tmp_path, provider, size) as (session, _):
        session.say("tell me")
        await session.see("Paragraph 13 of a long answer, 日本")
        await session.same()
        session.say("go on")
        length = 0
        for _ in range(2):
            await wait_until(lambda so_far=length: len(_live(session)) > so_far, "more of it")
            length = len(_live(session))
            await session.same()
        session.press("escape")
        await wait_until(lambda: not session.app.controller.view.is_running, "the end of the turn")
        await session.same()
        for n in range(2):
            session.say(f"and {n}")
            await session.see(f"echo: and {n}")
            await session.same()


def _live(session: TerminalSession) -> str:
    return session.app.controller.view.live.text


#: For each screen: the keys that open it, a text on it, and the key that closes it.
SCREENS = {
    "conversations": ("f2", "Conversations"),
    "lineage": ("f3", "Sessions of this conversation"),
    "summary": ("f4", "would become a summary"),
    "models": ("f5", "Model of this conversation"),
    "queue": ("f6", "waiting"),
    "keys": ("f1", "Enter"),
}


@pytest.mark.usefixtures("colours")
@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_every_screen_stands_in_the_cells_as_it_should_also_after_a_resize(
    tmp_path: Path, provider: FakeProvider, size: tuple[int, int]
) -> None:
    async with person(tmp_path, provider, size) as (session, server):
        await server.say("an older one", "older")
        session.say("what is it?")
        await session.see("echo: what is")
        for key, shown in SCREENS.values():
            session.press(key)
            await wait_until(lambda: len(session.app.screen_stack) == 2, f"the screen of {key}")
            await session.see(shown.split()[0])
            await session.same()
            await session.resize(*(60, 15))
            await session.same()
            await session.resize(*size)
            await session.same()
            session.press("escape")
            await wait_until(lambda: len(session.app.screen_stack) == 1, "the way back")
            await session.same()


@pytest.mark.usefixtures("colours")
@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_the_way_back_through_a_long_conversation_is_drawn_whole(
    tmp_path: Path, provider: FakeProvider, size: tuple[int, int]
) -> None:
    provider.script = reply_by_user_text(
        {"tell me": Text(LONG), "work": Calls([ScriptedCall("look", {"where": "crete"})])},
        default=echo,
    )
    async with person(tmp_path, provider, size) as (session, _):
        session.say("tell me")
        await session.see("Paragraph 39")
        for key in ("pageup", "pageup", "pageup", "pagedown"):
            session.press(key)
            await session.same()
        # Messages that arrive do not scroll the screen; another width keeps the position.
        await session.resize(60, 15)
        await session.same()
        session.say("one more")
        await wait_until(lambda: not session.app.controller.view.sending, "it to be stored")
        await session.same()
        session.press("tab", "home")
        await session.same()
        session.press("a")
        await session.same()
        session.press("end")
        await session.same()
        await session.resize(*size)
        await session.same()
