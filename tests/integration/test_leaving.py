"""Leaving a chat closes it: an unused session ends, and plugins are notified."""

from __future__ import annotations

import asyncio
import io
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from clew.cli.line_chat import chat_with_editor
from clew.cli.output import Output
from clew.config.settings import PluginsSettings
from clew.core.session import REOPEN, TUI_CLOSE
from clew.store.opening import open_store
from clew.store.transactions import conversations, sessions
from clew.testing import FakeProvider, echo
from tests.contract.lifecycle.product import SOON, Home
from tests.integration.api_server import running, settings_for
from tests.integration.test_cli_product import Typist
from tests.tui.screen import at
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clew.config import Settings


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(echo) as fake:
        yield fake


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(path=tmp_path)
    found.keep_diary("on_session_finalize", "on_session_reset")
    return found


def _settings(home: Home, provider: FakeProvider) -> Settings:
    settings = settings_for(home.path, provider=provider)
    return replace(settings, plugins=PluginsSettings(enabled=("diary",)))


def _chat(settings: Settings, *lines: str | None) -> None:
    screen = Output(io.StringIO())
    chat_with_editor(settings, "talk", Typist(lines), out=screen, notes=screen)


def _lineage(home: Path) -> list[tuple[str, str, str | None]]:
    """The sessions of the talk, with how each was opened and ended."""

    async def read() -> list[tuple[str, str, str | None]]:
        async with await open_store("sqlite:///clew.db", home=home) as store:
            found = await store.read(conversations.resolve_conversation, "talk")
            lineage = await store.read(sessions.list_sessions, found)
            return [(one.id, one.opened_by, one.end_reason) for one in lineage]

    return asyncio.run(read())


def test_leaving_the_line_chat_ends_its_session_and_returning_reopens_it(
    home: Home, provider: FakeProvider
) -> None:
    settings = _settings(home, provider)
    _chat(settings, "hello", None)
    ((first, _, reason),) = _lineage(home.path)
    assert reason == TUI_CLOSE
    assert home.boundaries() == [("finalize", {"session_id": first, "platform": "local"})]
    _chat(settings, "hello again", None)
    (_, (second, opened_by, reason)) = _lineage(home.path)
    assert (opened_by, reason) == (REOPEN, TUI_CLOSE)
    assert [facts["session_id"] for _, facts in home.boundaries()] == [first, second]
    # It leaves what it has moved to.
    _chat(settings, "/new", "and more", None)
    told = [(hook, facts["session_id"]) for hook, facts in home.boundaries()[2:]]
    ((third, _, reason),) = _lineage(home.path)
    assert reason == TUI_CLOSE
    # The session that ``/new`` left had ended before.
    assert told == [("reset", third), ("finalize", third)]


async def test_leaving_the_screen_ends_the_session_unless_others_are_attached(
    home: Home, provider: FakeProvider, tmp_path: Path
) -> None:
    async with running(_settings(home, provider)) as server:
        async with at(server, tmp_path / "one") as one:
            await one.say("hello")
            await one.see("echo: hello")
            async with at(server, tmp_path / "two"):
                pass
            found = await server.engine.resolve_name("talk")
            (session,) = (await server.engine.get_view(found)).sessions
            assert session.is_open
        await wait_until(home.boundaries, "plugins to be told", seconds=SOON)
        (session,) = (await server.engine.get_view(found)).sessions
        assert session.end_reason == TUI_CLOSE
        assert home.boundaries() == [("finalize", {"session_id": session.id, "platform": "local"})]
