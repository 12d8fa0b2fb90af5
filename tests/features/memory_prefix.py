"""A session in which facts change all the time, for a cache of a provider, and many facts."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew.core.scope import LOCAL, Scope
from clew.record import replace
from clew.testing import Calls, Text
from clew.testing.provider import ReplyUsage
from tests.features.delegation_world import obey
from tests.features.memory_world import ANN, open_memory

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from clew.store.contract import Tx
    from clew.testing import ProviderRequest, Reply

#: Characters of a token; tokens below which a provider caches nothing, and of which it caches
#: whole blocks.
_CHARACTERS, _LEAST, _BLOCK = 4, 1_024, 128


@dataclass(kw_only=True)
class CachingProvider:
    """Reports the tokens that it has in its cache, as a real one counts them: by the prefix."""

    seen: list[str] = field(default_factory=list[str])

    def __call__(self, request: ProviderRequest) -> Reply:
        body = json.dumps(_order(request.raw))[:-2]
        common = max((_count_common(one, body) for one in self.seen[-4:]), default=0)
        self.seen.append(body)
        blocks = common // _CHARACTERS // _BLOCK * _BLOCK
        reply = obey(request)
        assert isinstance(reply, Text | Calls)
        usage = ReplyUsage(
            input=len(body) // _CHARACTERS, output=9, cached=blocks if blocks >= _LEAST else 0
        )
        return replace(reply, usage=usage)


def _count_common(one: str, other: str) -> int:
    """Return how many characters two texts begin with in common."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def read_reported_share(t: Tx) -> float:
    """Return the part of all tokens that the provider reported as cached, in percent."""
    cached, sent = t.fetch_all("SELECT sum(cached_tokens), sum(input_tokens) FROM usage")[0]
    return 100 * int(cached) / int(sent)


@dataclass(frozen=True, kw_only=True, slots=True)
class PrefixStory:
    """The requests of one session."""

    requests: int
    #: Requests that do not begin with the one before, byte for byte.
    broken: int
    #: Characters of all requests, and of those that the one before had at the same place.
    sent: int
    cached: int
    #: Facts of which the last request knows nothing.
    untold: int
    #: The part of the tokens that the provider says it had in its cache, in percent, as stored.
    reported: float

    @property
    def share(self) -> float:
        """Return the part that a provider could take from its cache, in percent."""
        return 100 * self.cached / self.sent


async def tell_long_story(home: Path, url: str, *, turns: int, writes: int) -> PrefixStory:
    """Have facts written by others between the turns of one session."""
    async with open_memory(home, url, CachingProvider()) as world:
        await world.command("/remember Fact 0 was known before.", ANN)
        for turn in range(turns):
            await world.say(f"turn {turn}: {'what else? ' * 20}", ANN)
            if turn < writes:
                await world.command(f"/remember Fact {turn + 1} has come.", ANN)
        await world.say("what do you know?", ANN)
        await world.check()
        reported = await world.store.read(read_reported_share)
        bodies = [json.dumps(_order(one.raw)) for one in world.sent]
    pairs = list(itertools.pairwise(bodies))
    # The end of a body closes its list of messages.
    return PrefixStory(
        requests=len(bodies),
        broken=sum(not after.startswith(before[:-2]) for before, after in pairs),
        sent=sum(map(len, bodies)),
        cached=sum(len(before) - 2 for before, _ in pairs),
        untold=sum(f"Fact {n} " not in bodies[-1] for n in range(writes + 1)),
        reported=reported,
    )


def _order(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request with its messages at the end, as providers read it."""
    rest = {key: value for key, value in body.items() if key != "messages"}
    return {**rest, "messages": body["messages"]}


def insert_facts(t: Tx, count: int, scope: Scope = LOCAL) -> None:
    """Store many facts at once, as if one had been written after the other."""
    t.execute("INSERT INTO memory_scope (scope, version, last_number) VALUES ($1, $2, $2)",
              scope, count)  # fmt: skip
    for n in range(1, count + 1):
        t.execute(
            """
            INSERT INTO memory_fact (
                id, scope, number, kind, text, state, version, written_by, created_at
            ) VALUES ($1, $2, $3, 'fact', $4, 'active', $3, 'agent', $5)
            """,
            f"mem_{n}", scope, n, f"Person {n % 977} likes the number {n}.", 1_000 + n // 7,
        )  # fmt: skip
        t.execute(
            """
            INSERT INTO memory_change (scope, version, fact, change, written_by, at)
            VALUES ($1, $2, $3, 'added', 'agent', $4)
            """,
            scope, n, f"mem_{n}", 1_000 + n // 7,
        )  # fmt: skip
