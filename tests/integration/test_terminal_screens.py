"""Every screen of the terminal UI, judged by the cells that a terminal shows."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from clew.config.settings import ToolsSettings
from clew.testing import FakeProvider, Text
from clew.testing.provider import echo, sequence
from tests.integration.api_server import running, settings_for
from tests.tui.terminal_session import at_server

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    from tests.integration.api_server import Server
    from tests.tui.terminal_session import TerminalSession

SIZES = [(80, 24), (40, 10)]
COLOURS = {"256 colours": "", "true colour": "truecolor"}
LONG = "\n\n".join(f"Paragraph {n} of a long answer, 日本 and `code`." for n in range(40))


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(echo) as fake:
        yield fake


@pytest.fixture(params=COLOURS.values(), ids=[*COLOURS])
def colours(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", request.param)
    return request.param


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
    growing = Text("The end grows word by word, 日本 too, within one line.", chunks=10, delay=0.2)
    provider.script = sequence([Text(LONG), growing], default=echo)
    async with person(tmp_path, provider, size) as (session, _):
        session.say("tell me")
        await session.see("Paragraph 39 of a long answer, 日本")
        await session.same()
        session.say("and then?")
        looks = 0
        while "within one line." not in session.text:
            await session.same()
            looks += session.app.desk.view.live.text != ""
        await session.same()
        assert looks > 2
        for n in range(3):
            session.say(f"and {n}")
            await session.see(f"echo: and {n}")
            await session.same()
