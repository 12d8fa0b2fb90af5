"""Keys that come before the screen that they are meant for is built, or while it closes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from textual import events

from clew.testing import FakeProvider, Text
from clew.tui.screens.chat import ChatScreen
from clew.tui.screens.compaction import CompactionScreen
from clew.tui.screens.conversations import ConversationPicker
from clew.tui.screens.decision import ConfirmationScreen
from clew.tui.screens.edit_dialog import EditDialog
from clew.tui.screens.help import HelpScreen
from clew.tui.screens.picker import FilterPicker, PickerItem
from clew.tui.screens.queue import QueuePicker
from tests.integration.api_server import always, running, settings_for
from tests.tui.screen import at
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from clew.tui.controller import ConversationController
    from clew.tui.screens.dialog import Dialog

DIALOGS: dict[str, Callable[[ConversationController], Dialog[Any]]] = {
    "conversations": ConversationPicker,
    "a list": lambda _: FilterPicker([PickerItem(key="a", text="first")], heading="List"),
    "what waits": lambda _: QueuePicker([]),
    "a text": lambda _: EditDialog("Change", "as it was"),
    "the summary": CompactionScreen,
    "a question": lambda _: ConfirmationScreen(lambda: 0.0, question="Go back?", does="go back"),
    "the keys": lambda _: HelpScreen(),
}


@pytest.mark.parametrize("name", DIALOGS)
async def test_a_key_before_the_screen_is_built_or_while_it_closes_does_nothing(
    tmp_path: Path, name: str
) -> None:
    with FakeProvider(always(Text("yes"))) as provider:
        async with (
            running(settings_for(tmp_path, provider=provider)) as server,
            at(server, tmp_path) as seen,
        ):
            screen = DIALOGS[name](seen.app.controller)
            seen.app.push_screen(screen)
            # A key that was typed below is carried out here, where nothing is composed yet.
            bound = screen._bindings.key_to_bindings.values()  # pyright: ignore[reportPrivateUsage]
            actions = [one.action for each in bound for one in each]
            for action in set(actions) - {"cancel", "leave"}:
                await seen.app.run_action(action, screen)
            assert len(seen.app.screen_stack) == 2
            await seen.pilot.pause()
            screen.action_cancel()
            await wait_until(lambda: not screen.is_attached, "the end of the screen")
            # These were read before it closed, and are carried out only now.
            for action in actions:
                await seen.app.run_action(action, screen)
            await seen.pilot.pause()
            assert seen.app.is_running
            assert len(seen.app.screen_stack) == 1


async def test_text_typed_before_a_list_is_built_filters_it(tmp_path: Path) -> None:
    with FakeProvider(always(Text("yes"))) as provider:
        async with (
            running(settings_for(tmp_path, provider=provider)) as server,
            at(server, tmp_path) as seen,
        ):
            got: list[object] = []
            choices = [PickerItem(key=one, text=one) for one in ("first", "second")]
            screen = FilterPicker(choices, heading="List")
            seen.app.push_screen(screen, got.append)
            for letter in "sec":
                screen._forward_event(events.Key(letter, letter))  # pyright: ignore[reportPrivateUsage]
            screen._forward_event(events.Key("enter", "\r"))  # pyright: ignore[reportPrivateUsage]
            await wait_until(lambda: got, "the choice")
            assert [getattr(one, "key", one) for one in got] == ["second"]


async def test_ctrl_c_while_a_screen_opens_leaves_the_prompt_alone(tmp_path: Path) -> None:
    with FakeProvider(always(Text("yes"))) as provider:
        async with (
            running(settings_for(tmp_path, provider=provider)) as server,
            at(server, tmp_path) as seen,
        ):
            chat = seen.app.screen
            assert isinstance(chat, ChatScreen)
            opened = asyncio.Event()

            async def open_slowly() -> None:
                await opened.wait()

            await seen.type("half")
            chat._actions.open_screen(open_slowly)  # pyright: ignore[reportPrivateUsage]
            await seen.pilot.press("ctrl+c", "ctrl+c", "x")
            await seen.see("halfx")
            assert "Ctrl-C again" not in seen.text
            assert seen.app.is_running
            opened.set()


async def test_the_hint_of_ctrl_c_stands_as_long_as_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.tui.screens.chat.QUIT_WINDOW", 0.2)
    with FakeProvider(always(Text("yes"))) as provider:
        async with (
            running(settings_for(tmp_path, provider=provider)) as server,
            at(server, tmp_path) as seen,
        ):
            for _ in range(2):
                await seen.pilot.press("ctrl+c")
                await seen.gone("Ctrl-C again")
                assert seen.app.is_running
            monkeypatch.setattr("clew.tui.screens.chat.QUIT_WINDOW", 60)
            await seen.pilot.press("ctrl+c")
            await seen.see("Ctrl-C again")
            await seen.pilot.press("ctrl+c")
            await wait_until(lambda: not seen.app.is_running, "the end of the program")
