"""Clients of several protocols that send messages with keys while their gateway is killed."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import acp
import httpx2
from mcp import Client, StdioServerParameters

from clew.testing import FakeProvider, Text
from clew.wire.meta import KEY_FIELD
from tests.acceptance.program import Clew
from tests.acceptance.typed import programs
from tests.editors import EditorAtWork, LineTransport
from tests.integration.ag_ui_client import Copy
from tests.integration.mcp_clients import call, over_http
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path

    from clew.testing import ProviderRequest, Reply

    Say = Callable[[str, str], Awaitable[None]]

#: Messages of each client.
MESSAGES: Final = 6
#: Seconds after the gateway is ready in which it is killed, and for one attempt of a client.
_LIFE: Final = (0.05, 1.5)
_ATTEMPT: Final = 60.0
_PAUSE: Final = 0.05


@dataclass(kw_only=True)
class DoorCounts:
    """What came of one run."""

    kills: int = 0
    #: Attempts that failed and were repeated, by client.
    repeated: dict[str, int] = field(default_factory=dict[str, int])
    #: Messages that are not answered yet, by client.
    left: dict[str, int] = field(default_factory=dict[str, int])
    #: Empty if everything is right.
    wrong: list[str] = field(default_factory=list[str])


def answer(request: ProviderRequest) -> Reply:
    return Text(f"heard {request.messages[-1].text}", chunks=5, delay=0.02)


class KilledGateway:
    """A gateway that is killed again and again, and its address while it is there."""

    def __init__(self, clew: Clew) -> None:
        self.clew = clew
        self._url: str | None = None
        self._changed = asyncio.Condition()

    async def get_url(self) -> str:
        """Return the address, once it is ready."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._url is not None)
        assert self._url is not None
        return self._url

    async def live(self, end: Callable[[], Awaitable[object]]) -> None:
        """Serve until an end, and be killed."""
        serving = self.clew.serving()
        url, process = await asyncio.to_thread(serving.__enter__)
        try:
            await self._set(url)
            await end()
        finally:
            self._url = None
            process.kill()
            await asyncio.to_thread(serving.__exit__, None, None, None)

    async def _set(self, url: str) -> None:
        async with self._changed:
            self._url = url
            self._changed.notify_all()


async def talk_under_kills(home: Path, store_url: str, seed: int, kills: int) -> DoorCounts:
    """Have a client of each protocol send its messages while the gateway is killed."""
    chance, counts = random.Random(seed), DoorCounts()
    with FakeProvider(answer) as provider, programs() as folder:
        clew = Clew(home, {"CLEW_STORE__URL": store_url}).asking(provider)
        gateway = KilledGateway(clew)
        clients: dict[str, Callable[[Any], Any]] = {
            "acp": lambda name: _open_editor(gateway, name),
            "ag-ui": lambda name: _open_ag_ui(gateway, name),
            "mcp over http": lambda name: _open_http(gateway, name),
            "mcp over pipes": lambda name: _open_pipes(clew, folder, name),
        }
        places: dict[str, str] = {}
        async with asyncio.TaskGroup() as tasks:
            killing = tasks.create_task(_kill_repeatedly(gateway, counts, chance, kills))
            talking = [
                tasks.create_task(_talk(name, make, counts, places))
                for name, make in clients.items()
            ]
            await asyncio.gather(*talking)
            killing.cancel()
        counts.wrong += _find_wrong(clew, places)
    return counts


async def _kill_repeatedly(
    gateway: KilledGateway, counts: DoorCounts, chance: random.Random, kills: int
) -> None:
    while counts.kills < kills:
        # Every second one lives a while: a turn that was interrupted three times is given up.
        if counts.kills % 2:
            await gateway.live(lambda before=dict(counts.left): _wait_for_answers(counts, before))
        else:
            await gateway.live(lambda: asyncio.sleep(chance.uniform(*_LIFE)))
        counts.kills += 1
    await gateway.live(asyncio.Event().wait)


async def _wait_for_answers(counts: DoorCounts, before: dict[str, int]) -> None:
    """Wait until every client has got an answer, unless it has all."""

    def is_answered() -> bool:
        return all(counts.left[name] < left for name, left in before.items() if left)

    await wait_until(is_answered)


@dataclass(kw_only=True)
class Door:
    """A client's place, which it keeps over connections."""

    left: list[str]
    conversation: str = ""
    #: What a front-end holds.
    copy: Copy = field(default_factory=Copy)


async def _talk(
    name: str, open_client: Callable[[Door], Any], counts: DoorCounts, places: dict[str, str]
) -> None:
    """Send the messages one after the other, each until it is answered."""
    door = Door(left=[f"{name} {number}" for number in range(MESSAGES)])
    counts.repeated[name] = 0
    while door.left:
        try:
            async with open_client(door) as say:
                await _say_all(name, door, say, counts)
        except Exception:  # noqa: BLE001  (a lost gateway may cause anything: try again)
            counts.repeated[name] += 1
            await asyncio.sleep(_PAUSE)
    places[name] = door.conversation


async def _say_all(name: str, door: Door, say: Say, counts: DoorCounts) -> None:
    while door.left:
        counts.left[name] = len(door.left)
        async with asyncio.timeout(_ATTEMPT):
            await say(door.left[0], f"key of {door.left[0]}")
        del door.left[0]
        counts.left[name] = len(door.left)


@asynccontextmanager
async def _open_editor(gateway: KilledGateway, door: Door) -> AsyncGenerator[Say]:
    """An editor that starts its agent, and loads its session again."""
    await gateway.get_url()
    starting = gateway.clew.started("acp", piped=True)
    process = await asyncio.to_thread(starting.__enter__)
    try:
        source, sink = process.stdout, process.stdin
        assert source is not None
        assert sink is not None

        async def write(line: str) -> None:
            print(line, file=sink, flush=True)

        reading = LineTransport(lambda: asyncio.to_thread(source.readline), write)
        editor = EditorAtWork(reading, gateway.clew.home)
        await editor.agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        if door.conversation:
            await editor.load(door.conversation)
        else:
            door.conversation = await editor.open(**{KEY_FIELD: "the session of the editor"})

        async def say(text: str, key: str) -> None:
            assert await editor.say(door.conversation, text, **{KEY_FIELD: key}) == "end_turn"

        yield say
        await editor.agent.close()
    finally:
        process.kill()
        await asyncio.to_thread(starting.__exit__, None, None, None)


@asynccontextmanager
async def _open_ag_ui(gateway: KilledGateway, door: Door) -> AsyncGenerator[Say]:
    """A front-end that holds a copy of the conversation, and repeats its run."""
    door.conversation, copy = "front", door.copy
    async with httpx2.AsyncClient(base_url=await gateway.get_url(), timeout=_ATTEMPT) as http:

        async def say(text: str, key: str) -> None:
            if ("user", text) not in copy.texts:
                copy.say(text, key)
            asked = {"threadId": "front", "runId": key, "messages": copy.messages}
            await _run(http, copy, asked)
            assert copy.end["type"] == "RUN_FINISHED", copy.end
            assert copy.texts[-2:] == [("user", text), ("assistant", f"heard {text}")]

        yield say


async def _run(http: httpx2.AsyncClient, copy: Copy, asked: dict[str, Any]) -> None:
    copy.events, copy.opened = [], set()
    async with http.stream("POST", "/ag-ui", json=asked) as response:
        async for line in response.aiter_lines():
            if line.startswith("data:"):
                copy.take(json.loads(line.removeprefix("data:")))


@asynccontextmanager
async def _open_http(gateway: KilledGateway, door: Door) -> AsyncGenerator[Say]:
    door.conversation = "web"
    async with over_http(await gateway.get_url(), query="") as client:
        yield _make_say(client, door)


@asynccontextmanager
async def _open_pipes(clew: Clew, folder: Path, door: Door) -> AsyncGenerator[Say]:
    door.conversation = "pipes"
    program = StdioServerParameters(command=str(folder / "clew"), args=["mcp"], env=clew.environ)
    async with Client(program) as client:
        yield _make_say(client, door)


def _make_say(client: Client, door: Door) -> Say:
    async def say(text: str, key: str) -> None:
        given = {"conversation": door.conversation, "text": text, "key": key}
        told = await call(client, "send_message", **given)
        assert told["text"] == f"heard {text}", told

    return say


def _find_wrong(clew: Clew, places: dict[str, str]) -> list[str]:
    """Return a sentence for each thing in the store that is not as it has to be."""
    wrong = [str(one) for one in clew.data("fsck")["findings"]]
    for name, conversation in places.items():
        texts = [f"{name} {number}" for number in range(MESSAGES)]
        wanted = [one for text in texts for one in (("user", text), ("assistant", f"heard {text}"))]
        if (said := clew.said(conversation)) != wanted:
            wrong.append(f"{name}: the conversation is {said}")
    return wrong
