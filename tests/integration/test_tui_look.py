"""The look of the terminal UI, as a terminal shows it: first screen, activity, footer, sizes."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from clew.config.settings import ToolsSettings
from clew.testing import Endless, FakeProvider, Text
from clew.testing.provider import Calls, ScriptedCall, echo, reply_by_user_text, reply_in_sequence
from tests.integration.api_server import running, settings_for
from tests.tui.terminal_session import TerminalSession, at_server

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from clew.testing.provider import Script

SIZES = [(80, 24), (40, 10)]


@asynccontextmanager
async def person(
    home: Path,
    script: Script,
    *,
    size: tuple[int, int] = (80, 24),
    tools: bool = True,
    model: str | None = None,
) -> AsyncGenerator[TerminalSession]:
    with FakeProvider(script) as provider:
        settings = settings_for(home, provider=provider)
        if tools:
            settings = replace(settings, tools=ToolsSettings(modules=("tests.tui.tools",)))
        if model is not None:
            settings = replace(settings, model=replace(settings.model, name=model))
        async with running(settings) as server, at_server(server, home, size=size) as seen:
            yield seen


@pytest.mark.parametrize("size", SIZES)
async def test_the_first_screen_says_who_answers_and_what_to_do_next(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with person(tmp_path, echo, size=size) as seen:
        await seen.see("Model         openai-chat:fake-model", "Tools         look, pay", "Home")
        await seen.see("Conversation  talk", "Type a message", "? keys")
        if size == (80, 24):
            await seen.see("press Enter.", "/help lists commands", "^O conversations", "^D leave")
            assert seen.text.count("╭") == 2, "the first screen and the prompt have frames"
        await seen.same()
        seen.say("hello")
        await seen.see("echo: hello")
        await seen.gone("Conversation  talk")
        await seen.same()


async def test_offline_the_first_screen_leads_to_setup(tmp_path: Path) -> None:
    async with person(tmp_path, echo, tools=False, model="offline") as seen:
        await seen.see("offline script", "read_file, ", "Run clew setup to choose a model.")


async def test_while_an_answer_is_made_its_seconds_are_counted(tmp_path: Path) -> None:
    script = reply_by_user_text({"go on": Endless(interval=0.1)}, default=echo)
    async with person(tmp_path, script) as seen:
        seen.say("go on")
        await seen.see("Answering…", " s · about ", "Esc stops")
        seen.press("escape")
        await seen.gone("Answering…")
        await seen.same()


@pytest.mark.parametrize("size", SIZES)
async def test_messages_answers_and_calls_have_their_lines(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    calls = Calls([ScriptedCall("look", {"where": "crete"})])
    async with person(
        tmp_path, reply_in_sequence([calls, Text("done")], default=echo), size=size
    ) as seen:
        seen.say("please")
        await seen.see("✓ look(", "└ in crete there is", "done", "Clew (fake-model) · ")
        await seen.same()
        for columns, lines in [(60, 20), (30, 8), size]:
            await seen.resize(columns, lines)
            await seen.same()


async def test_keys_that_every_terminal_passes_through_lead_to_the_screens(tmp_path: Path) -> None:
    async with person(tmp_path, echo) as seen:
        seen.say("hello")
        await seen.see("echo: hello")
        for key, heading in [
            ("ctrl+o", "Conversations"),
            ("ctrl+t", "Sessions of this conversation"),
            ("ctrl+r", "would become a summary"),
            ("ctrl+l", "Model of this conversation"),
            ("ctrl+n", "No messages are waiting"),
        ]:
            seen.press(key)
            await seen.see(heading)
            seen.press("ctrl+c")
            await seen.gone(heading)
        seen.press("ctrl+g")
        await seen.see("No tool call is waiting for approval.")


async def test_a_question_mark_shows_the_keys_and_may_still_begin_a_message(tmp_path: Path) -> None:
    async with person(tmp_path, echo) as seen:
        seen.press("?")
        await seen.see("point at messages", "all keys")
        # All at once, as a slow connection brings them.
        seen.press("escape", "?what", "enter")
        await seen.see("echo: ?what")
        seen.press("tab")
        await seen.see("┃ echo")
        seen.press("?")
        await seen.see("Ctrl-D")
        await seen.same()


async def test_ctrl_c_clears_then_leaves_and_ctrl_d_leaves_where_nothing_is_written(
    tmp_path: Path,
) -> None:
    async with person(tmp_path, echo) as seen:
        seen.press("not yet")
        await seen.see("not yet")
        seen.press("home", "ctrl+d", "ctrl+c")
        await seen.see("Press Ctrl-C again to leave.", "Type a message")
        seen.press("up")
        await seen.see("ot yet")
        seen.press("ctrl+c", "ctrl+c")
        await seen.ended()
    (tmp_path / "other").mkdir()
    async with person(tmp_path / "other", echo) as seen:
        seen.press("ctrl+d")
        await seen.ended()


async def test_a_long_paste_is_folded_and_sent_whole(tmp_path: Path) -> None:
    pasted = "\n".join(f"line {number}" for number in range(120))
    async with person(tmp_path, lambda request: Text(str(len(request.last_user_text)))) as seen:
        seen.press("see ")
        seen.paste(pasted)
        await seen.see("see [pasted 120 lines]")
        seen.press("backspace")
        await seen.gone("[pasted")
        seen.paste(pasted)
        await seen.see("see [pasted 120 lines #2]")
        seen.press("enter")
        await seen.see(str(len(f"see {pasted}")), "line 119")
        await seen.same()
