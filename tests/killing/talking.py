"""People who talk to gateways over HTTP, each message to any of them, until it is answered."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2

from tests.killing.plans import Say
from tests.killing.records import Acknowledged, Ended, Handed, Killed, Took

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.killing.child import Job
    from tests.killing.records import Record

#: The plans of a conversation's messages, repeated.
PLANS = ("", "", "look put", "")
#: Seconds for one try: a gateway that is cut off takes requests and does not answer.
PATIENCE = 60.0


@dataclass(kw_only=True)
class Talk:
    """
    Conversations whose messages go to a gateway at random, each once the one before is answered.

    A message that was not answered is said again with the same key, to another gateway: so do
    clients of a load balancer.
    """

    job: Job
    urls: Sequence[str]
    conversations: int
    messages: int
    #: Messages that are under way at the same time.
    at_once: int = 12
    patience: float = PATIENCE
    #: Set when nothing new is to be said.
    enough: bool = False
    #: For each message that was sent again, the response that came instead of an answer.
    again: list[str] = field(default_factory=list[str])
    #: Duration of each message.
    seconds: list[float] = field(default_factory=list[float])
    #: Keys of the messages that are under way.
    waiting: set[str] = field(default_factory=set[str])

    async def run(self) -> None:
        """Return once everything is answered, or ``enough`` and that."""
        self._places = asyncio.Semaphore(self.at_once)
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
        async with (
            httpx2.AsyncClient(timeout=self.patience, limits=limits) as self._http,
            asyncio.TaskGroup() as tasks,
        ):
            for number in range(1, self.conversations + 1):
                tasks.create_task(self._talk(number))

    @property
    def answered(self) -> int:
        return len(self.seconds)

    async def _talk(self, number: int) -> None:
        for n, plan in zip(range(1, self.messages + 1), itertools.cycle(PLANS), strict=False):
            say = Say(key=f"c{number}m{n}", plan=plan)
            async with self._places:
                if self.enough:
                    return
                began = time.monotonic()
                self.job.fronts.add(Handed(key=say.key, text=say.text, rule="queue"))
                self.waiting.add(say.key)
                self._note(say, await self._answer(say))
                self.waiting.remove(say.key)
                self.seconds.append(time.monotonic() - began)

    async def _answer(self, say: Say) -> httpx2.Response:
        while True:
            try:
                answer = await self._ask(say, random.choice(self.urls))
            except httpx2.HTTPError as error:
                self.again.append(type(error).__name__)
            else:
                if answer.status_code != 503:
                    return answer
                self.again.append(f"{answer.status_code} {answer.json()['error']['code']}")
            await asyncio.sleep(0.05)

    async def _ask(self, say: Say, url: str) -> httpx2.Response:
        return await self._http.post(
            f"{url}/v1/chat/completions",
            json={"messages": [{"role": "user", "content": say.text}]},
            headers={"X-Clew-Conversation": say.conversation, "Idempotency-Key": say.key},
        )

    def _note(self, say: Say, answer: httpx2.Response) -> None:
        told: dict[str, Any] = answer.json()
        if answer.status_code != 200:
            raise AssertionError(f"{say.key}: {answer.status_code} {told}")
        conversation, turn = told["clew"]["conversation"], told["clew"]["turn"]
        self.job.fronts.add(
            Acknowledged(
                key=say.key, inbox_id=told["id"], conversation=conversation, duplicate=False
            )
        )
        self.job.fronts.add(
            Ended(
                key=say.key,
                outcome="turn",
                turn=turn,
                turn_outcome="answered",
                text=told["choices"][0]["message"]["content"],
            )
        )


def take_overs(records: Iterable[Record]) -> list[float]:
    """Seconds from when a process was killed until another one went on with a turn of its."""
    holder: dict[str, int] = {}
    died: dict[int, float] = {}
    found: list[float] = []
    for record in sorted(records, key=lambda record: record.at):
        if isinstance(record, Killed):
            died[record.pid] = record.at
        elif isinstance(record, Took):
            before = holder.get(record.turn)
            if record.resumed and before in died and before != record.pid:
                found.append(record.at - died[before])
            holder[record.turn] = record.pid
    return found
