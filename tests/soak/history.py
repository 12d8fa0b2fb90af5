"""
Clients append to conversations and read them through two gateways that are killed; judge the order.

Each message is an append to a list, each look at the entries a read of it. What the clients saw has
to be linearizable. ``SECONDS`` (60) and ``CLEW_SOAK_SEED`` come from the environment.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2

from tests.killing import processes
from tests.killing.child import Job
from tests.killing.cluster import LEASE
from tests.killing.gateways import Gateways
from tests.soak import Table
from tests.soak._list_append import Operation, find_anomalies
from tests.soak._stores import fresh, server

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

SECONDS = float(os.environ.get("SECONDS", "60"))
SEED = int(os.environ.get("CLEW_SOAK_SEED", "1"))
LISTS, CLIENTS, GATEWAYS = 4, 4, 2
#: Seconds between two kills, and for one try of a client.
_BETWEEN, _PATIENCE = 3.0, 20.0


@dataclass(kw_only=True)
class _List:
    """A conversation, and all that was seen of it."""

    name: str
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    history: list[Operation] = field(default_factory=list[Operation])


class _Clients:
    """Clients of gateways that come and go."""

    def __init__(self, gateways: Gateways, http: httpx2.AsyncClient) -> None:
        self._gateways, self._http, self._random = gateways, http, random.Random(SEED)
        self.tries = 0
        self.ends = time.monotonic() + SECONDS

    async def use(self, one: _List) -> None:
        """Append and read, by turns of chance, until the time is over."""
        while time.monotonic() < self.ends:
            if self._random.random() < 0.4:
                await self.append(one)
            else:
                await self.read(one)

    async def append(self, one: _List) -> None:
        key, begun = f"{one.name}m{next(one.numbers)}", time.monotonic()
        await self._insist(lambda url: self._http.post(
            f"{url}/v1/chat/completions",
            json={"messages": [{"role": "user", "content": f"{key}: "}]},
            headers={"X-Clew-Conversation": one.name, "Idempotency-Key": key},
        ))  # fmt: skip
        one.history.append(Operation(begun=begun, ended=time.monotonic(), appended=key))

    async def read(self, one: _List) -> None:
        values: list[str] = []
        after, begun = 0, time.monotonic()
        while True:
            place = f"/api/conversations/{one.name}/entries?after={after}&limit=200"
            page = (await self._insist(lambda url, place=place: self._http.get(url + place))).json()
            items: list[dict[str, Any]] = page.get("items", [])
            values += [item["text"].partition(":")[0] for item in items if item["role"] == "user"]
            if len(items) < 200:
                break
            after = items[-1]["seq"]
        one.history.append(Operation(begun=begun, ended=time.monotonic(), read=tuple(values)))

    async def _insist(
        self, ask: Callable[[str], Coroutine[Any, Any, httpx2.Response]]
    ) -> httpx2.Response:
        while True:
            self.tries += 1
            with suppress(httpx2.HTTPError):
                answer = await ask(self._random.choice(self._gateways.urls()))
                if answer.status_code != 503:
                    return answer
            await asyncio.sleep(0.05)


def run() -> Table:
    lists = [_List(name=f"c{number}") for number in range(1, LISTS + 1)]
    with (
        server() as server_url,
        fresh("postgres", server_url) as (url, home),
        processes.provider(home) as provider,
    ):
        job = Job(folder=home, store_url=url, provider=provider, lease=LEASE)
        with Gateways(jobs=[job] * GATEWAYS) as gateways:
            tries = asyncio.run(_talk(gateways, lists))
            kills = gateways.kills
    anomalies = [sentence for one in lists for sentence in find_anomalies(one.history)]
    for sentence in anomalies:
        print(sentence, flush=True)
    done = [operation for one in lists for operation in one.history]
    appends = sum(operation.appended is not None for operation in done)
    return Table(
        title=f"{LISTS} lists, {CLIENTS} clients each, {GATEWAYS} gateways on PostgreSQL",
        columns=("what", "count"),
        rows=(
            ("appends, each answered", appends),
            ("reads", len(done) - appends),
            ("requests, with those that were made again", tries),
            ("gateways killed", kills),
            ("anomalies", len(anomalies)),
        ),
        passed=not anomalies and kills > 0,
    )


async def _talk(gateways: Gateways, lists: list[_List]) -> int:
    async with httpx2.AsyncClient(timeout=_PATIENCE) as http:
        clients = _Clients(gateways, http)
        await asyncio.gather(*(clients.append(one) for one in lists))
        clients.ends = time.monotonic() + SECONDS
        killing = asyncio.create_task(_kill(gateways))
        await asyncio.gather(*(clients.use(one) for one in lists for _ in range(CLIENTS)))
        killing.cancel()
        await asyncio.gather(killing, return_exceptions=True)
        await asyncio.gather(*(clients.read(one) for one in lists))
    return clients.tries


async def _kill(gateways: Gateways) -> None:
    for number in itertools.cycle(range(GATEWAYS)):
        await asyncio.sleep(_BETWEEN)
        await asyncio.to_thread(gateways.kill, number)
