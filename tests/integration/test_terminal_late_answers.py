"""Answers and actions of the terminal UI that come after another conversation is shown."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from clew.testing import FakeProvider
from clew.testing.provider import echo
from clew.tui.controller import PAGE_SIZE
from clew.tui.screens.chat import ChatScreen
from clew.tui.screens.decision import ConfirmationScreen
from clew.tui.state import reducer
from clew.tui.state.view import LinkState
from clew.tui.widgets.transcript import Transcript
from clew.wire import methods
from clew.wire.params import OpenParams
from tests.integration.api_server import running, settings_for
from tests.integration.rpc_clients import over_pipe
from tests.tui.screen import Seen, before
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from clew.tui.controller import ConversationController
    from clew.tui.transports import Connect, FrameConnection
    from clew.wire.methods import RpcMethod
    from tests.integration.api_server import Server


class Hold:
    """Holds back the answers of one method until they are let through."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self.method = ""
        self._held_ids: set[object] = set()
        self._open = asyncio.Event()

    def hold(self, method: RpcMethod[Any, Any]) -> None:
        self.method = method.name
        self._open.clear()

    @property
    def holds(self) -> bool:
        return bool(self._held_ids)

    def release(self) -> None:
        self.method = ""
        self._open.set()

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[FrameConnection]:
        async with self._connect() as inner:
            yield _Held(inner, self)

    def note_request(self, frame: str) -> None:
        request = json.loads(frame)
        if self.method and request["method"] == self.method:
            self._held_ids.add(request["id"])

    def is_held(self, frame: str | bytes) -> bool:
        return json.loads(frame).get("id") in self._held_ids

    async def wait_open(self) -> None:
        await self._open.wait()
        self._held_ids.clear()


class _Held:
    """Connection whose held answers come when everything else has come."""

    def __init__(self, inner: FrameConnection, hold: Hold) -> None:
        self._inner, self._hold = inner, hold
        self._frames: asyncio.Queue[str | bytes | Exception] = asyncio.Queue()
        self._tasks = [asyncio.create_task(self._read(), name="held-reader")]

    async def send(self, frame: str) -> None:
        self._hold.note_request(frame)
        await self._inner.send(frame)

    async def receive(self) -> str | bytes:
        frame = await self._frames.get()
        if isinstance(frame, Exception):
            raise frame
        return frame

    async def _read(self) -> None:
        try:
            while True:
                frame = await self._inner.receive()
                if self._hold.is_held(frame):
                    self._tasks.append(asyncio.create_task(self._later(frame), name="held"))
                else:
                    self._frames.put_nowait(frame)
        except Exception as error:  # noqa: BLE001  (the reader of the frames gets it)
            self._frames.put_nowait(error)

    async def _later(self, frame: str | bytes) -> None:
        await self._hold.wait_open()
        self._frames.put_nowait(frame)


@asynccontextmanager
async def person(tmp_path: Path) -> AsyncGenerator[tuple[Seen, Server, Hold]]:
    with FakeProvider(echo) as provider:
        async with running(settings_for(tmp_path, provider=provider)) as server:
            hold = Hold(over_pipe(server))
            async with before(hold.connect, tmp_path) as seen:
                controller = seen.app.controller
                await wait_until(lambda: controller.view.conversation, "the conversation")
                yield seen, server, hold


async def _texts(server: Server, name: str) -> list[str]:
    conversation = await server.engine.resolve_name(name)
    entries = await server.engine.read_entries(conversation, after=0, limit=1000)
    return [entry.text for entry in entries]


async def _held(hold: Hold, what: str) -> None:
    await wait_until(lambda: hold.holds, what)


def _shown(controller: ConversationController) -> str:
    assert controller.view.conversation is not None
    return controller.view.conversation.id


async def test_usage_that_comes_late_does_not_bring_back_the_conversation_that_was_left(
    tmp_path: Path,
) -> None:
    async with person(tmp_path) as (seen, server, hold):
        controller = seen.app.controller
        first = _shown(controller)
        hold.hold(methods.STATUS)
        asked = asyncio.create_task(controller.refresh_usage())
        await _held(hold, "the request for the usage")
        await controller.switch_to_named("other")
        other = _shown(controller)
        assert other != first
        hold.release()
        await asked
        assert _shown(controller) == other
        await seen.say("for the other")
        await seen.see("echo: for the other")
        await server.engine.wait_until_idle()
        assert await _texts(server, other) == ["for the other", "echo: for the other"]
        assert await _texts(server, first) == []


async def test_earlier_entries_that_come_late_do_not_stand_in_another_conversation(
    tmp_path: Path,
) -> None:
    async with person(tmp_path) as (seen, server, hold):
        controller = seen.app.controller
        for number in range(PAGE_SIZE // 2 + 1):
            await server.say(f"message {number}")
        await controller.switch_to_named("other")
        await controller.switch_to_named("talk")
        assert controller.view.first > 1
        hold.hold(methods.ENTRIES)
        asked = asyncio.create_task(controller.load_older())
        await _held(hold, "the request for the page")
        await controller.switch_to_named("other")
        hold.release()
        await asked
        assert controller.view.blocks == ()
        await seen.gone("message 27")


async def test_what_changes_while_a_conversation_is_loaded_stays(tmp_path: Path) -> None:
    async with person(tmp_path) as (seen, server, hold):
        controller = seen.app.controller
        await seen.say("hello")
        await seen.see("echo: hello")
        talk = _shown(controller)
        await controller.switch_to_named("other")
        hold.hold(methods.ENTRIES)
        shown = asyncio.create_task(controller.switch_to_named(talk))
        await _held(hold, "the request for the entries")
        controller.view = reducer.mark_answered(controller.view, "apv_1", given=True)
        hold.release()
        await shown
        assert controller.view.answered == {"apv_1"}
        assert controller.view.link is LinkState.UP
        await seen.see("echo: hello")
        assert await _texts(server, talk) == ["hello", "echo: hello"]


@pytest.mark.parametrize("goes_elsewhere", [False, True])
async def test_a_message_typed_after_a_command_goes_where_the_command_leads(
    tmp_path: Path, *, goes_elsewhere: bool
) -> None:
    async with person(tmp_path) as (seen, server, hold):
        controller = seen.app.controller
        first = _shown(controller)
        hold.hold(methods.RUN)
        await seen.say("/new")
        await seen.say("for the new one")
        await _held(hold, "the command")
        if goes_elsewhere:
            await controller.switch_to_named("other")
        hold.release()
        await wait_until(lambda: not controller.outbox.unsent, "everything to be sent")
        [made] = {one.id for one in (await server.engine.list_conversations(limit=10)).items} - {
            first,
            await server.engine.resolve_name("other") if goes_elsewhere else first,
        }
        await wait_until(lambda: _is_answered(server, made), "the answer")
        assert await _texts(server, first) == []
        # A person who has opened another conversation stays there.
        assert (_shown(controller) == made) is not goes_elsewhere


async def _is_answered(server: Server, name: str) -> bool:
    return await _texts(server, name) == ["for the new one", "echo: for the new one"]


async def test_a_rewind_that_is_confirmed_late_rewinds_the_conversation_of_its_message(
    tmp_path: Path,
) -> None:
    async with person(tmp_path) as (seen, _server, _hold):
        controller = seen.app.controller
        for name in ("other", "talk"):
            await controller.switch_to_named(name)
            for text in ("one", "two"):
                await seen.say(text)
                await seen.see(f"echo: {text}")
        screen, talk = seen.app.screen, _shown(controller)
        assert isinstance(screen, ChatScreen)
        block = next(block for block in controller.view.blocks if block.text == "two")
        screen.on_transcript_action_requested(Transcript.ActionRequested("rewind", block))
        await wait_until(lambda: isinstance(seen.app.screen, ConfirmationScreen), "the question")
        await controller.switch_to_named("other")
        await seen.decide("y")
        await seen.see("rewound")
        opened = {
            name: await controller.call(methods.OPEN, OpenParams(conversation=name))
            for name in (talk, "other")
        }
        assert opened[talk].state.taken_back
        assert not opened["other"].state.taken_back


class _Slow:
    """Connection that takes long to send the end of a subscription."""

    def __init__(self, inner: FrameConnection) -> None:
        self._inner = inner

    async def send(self, frame: str) -> None:
        if json.loads(frame)["method"] == methods.UNSUBSCRIBE.name:
            await asyncio.sleep(0.1)
        await self._inner.send(frame)

    async def receive(self) -> str | bytes:
        return await self._inner.receive()


async def test_a_conversation_that_is_opened_again_is_followed_although_sending_takes_long(
    tmp_path: Path,
) -> None:
    with FakeProvider(echo) as provider:
        async with running(settings_for(tmp_path, provider=provider)) as server:

            @asynccontextmanager
            async def connect() -> AsyncGenerator[FrameConnection]:
                async with over_pipe(server)() as inner:
                    yield _Slow(inner)

            async with before(connect, tmp_path) as seen:
                controller = seen.app.controller
                await wait_until(lambda: controller.view.conversation, "the conversation")
                await controller.switch_to_named("talk")
                await seen.say("hello")
                await seen.see("echo: hello")
