"""An evening: three screens on one conversation, and a server that is killed meanwhile."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.testing import FakeProvider, Text, reply_in_sequence
from tests.screens.screen import HttpScreen, ProtocolScreen
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from tests.acceptance.program import Clew, Process
    from tests.screens.screen import Screen, Shown

#: Seconds after which an evening is given up.
_PATIENCE = 600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Evening:
    """Result of a run."""

    screens: tuple[Screen, ...]
    said: tuple[str, ...]
    kills: int

    @property
    def missing(self) -> int:
        """Messages that were said, and are not shown exactly once."""
        users = [
            text for _, kind, role, text in self.entries if (kind, role) == ("message", "user")
        ]
        return sum(users.count(text) != 1 for text in self.said)

    @property
    def unanswered(self) -> int:
        """Messages without an answer right after them."""
        told = [one for one in self.entries if one[1] == "message"]
        pairs = zip(told, [*told[1:], (0, "", None, "")], strict=True)
        return sum(before[2] == "user" and after[2] != "assistant" for before, after in pairs)

    @property
    def entries(self) -> Sequence[Shown]:
        return self.screens[0].seen.entries

    @property
    def different(self) -> int:
        """Screens that show something else than the first one."""
        return sum(screen.seen.entries != self.entries for screen in self.screens)

    @property
    def wrong(self) -> int:
        return sum(screen.seen.wrong for screen in self.screens)

    @property
    def passed(self) -> bool:
        return (self.missing, self.unanswered, self.different, self.wrong) == (0, 0, 0, 0)


def spend(clew: Clew, *, messages: int, kills: int) -> Evening:
    """Say so many messages on three screens, and kill the server so often."""
    slow = Text("an answer in a few pieces, each of which takes its time", chunks=6, delay=0.02)
    with FakeProvider(reply_in_sequence([], default=slow)) as provider:
        return asyncio.run(_Host(clew.asking(provider)).evening(messages, kills))


class _Host:
    def __init__(self, clew: Clew) -> None:
        port = _free_port()
        self._clew = clew.with_env({"CLEW_API__PORT": str(port)})
        self._url = f"http://127.0.0.1:{port}"
        self._screens: tuple[Screen, ...] = (
            ProtocolScreen(self._url),
            ProtocolScreen(self._url),
            HttpScreen(self._url),
        )

    async def evening(self, messages: int, kills: int) -> Evening:
        said = tuple(f"message {n}" for n in range(messages))
        with ExitStack() as server:
            await asyncio.to_thread(server.enter_context, self._serving())
            async with asyncio.timeout(_PATIENCE), asyncio.TaskGroup() as tasks:
                watching = [tasks.create_task(each.watch()) for each in self._screens]
                saying = tasks.create_task(self._say(said))
                for kill in range(kills):
                    # In the middle of what there is to be said.
                    await self._until_shown(2 * messages * (kill + 1) // (kills + 2) + 1)
                    await asyncio.to_thread(server.close)
                    await asyncio.to_thread(server.enter_context, self._serving())
                await saying
                await self._until(lambda: all(map(self._shows_all, self._screens)))
                for each in watching:
                    each.cancel()
        return Evening(screens=self._screens, said=said, kills=kills)

    @contextmanager
    def _serving(self) -> Generator[Process]:
        """``clew serve``, killed at the end of the block."""
        with self._clew.started("serve") as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("ready")
            yield process

    async def _say(self, said: Sequence[str]) -> None:
        """Each screen says its part, one after the other; all three at once."""
        async with asyncio.TaskGroup() as tasks:
            for place, screen in enumerate(self._screens):
                tasks.create_task(_say_all(screen, said[place::3]))
        self._wanted = 2 * len(said)

    def _shows_all(self, screen: Screen) -> bool:
        told = [one for one in screen.seen.entries if one[1] == "message"]
        return len(told) >= self._wanted

    async def _until_shown(self, count: int) -> None:
        await self._until(lambda: min(each.seen.last for each in self._screens) >= count)

    async def _until(self, condition: Callable[[], bool]) -> None:
        await wait_until(condition)


async def _say_all(screen: Screen, said: Sequence[str]) -> None:
    for text in said:
        await screen.say(text)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]
