"""A streamed response whose gateway is killed between any two events, and taken up again."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx2
import openai

from clew.testing import FakeProvider, Text
from tests.acceptance.program import Clew

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from openai.types.responses import ResponseStreamEvent

#: Pieces of the answer, and the events of a whole stream: eight are around the pieces.
PIECES = 40
EVENTS = PIECES + 8
WORDS = " ".join(f"word{number}" for number in range(PIECES))


@dataclass(kw_only=True)
class Heard:
    """What a client has received over all connections."""

    events: list[ResponseStreamEvent] = field(default_factory=list["ResponseStreamEvent"])
    kills: int = 0
    #: Empty if everything is right.
    wrong: list[str] = field(default_factory=list[str])

    @property
    def response(self) -> str | None:
        for event in self.events:
            if event.type == "response.created":
                return event.response.id
        return None

    @property
    def is_over(self) -> bool:
        return bool(self.events) and self.events[-1].type == "response.completed"


def hear_under_kills(home: Path, store_url: str, seed: int) -> Heard:
    """Ask for a streamed response, and kill the gateway once or twice before it is over."""
    chosen = random.Random(seed)
    left = [chosen.randrange(EVENTS) for _ in range(chosen.choice((1, 1, 2)))]
    heard = Heard()
    with FakeProvider(lambda _: Text(WORDS, chunks=PIECES, delay=0.003)) as provider:
        clew = Clew(home, {"CLEW_STORE__URL": store_url}).asking(provider)
        while not heard.is_over:
            _hear_until_killed(clew, heard, left.pop() if left else None)
        with clew.serving() as (url, _), _client(url) as client:
            heard.wrong += _judge(client, heard)
        heard.wrong += [str(one) for one in clew.data("fsck")["findings"]]
    return heard


def _hear_until_killed(clew: Clew, heard: Heard, stop: int | None) -> None:
    with clew.serving() as (url, process), _client(url) as client:
        with suppress(openai.APIError, httpx2.HTTPError):
            _hear(client, heard, stop)
        if not heard.is_over:
            process.kill()
            heard.kills += 1


def _client(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0, timeout=120)


def _hear(client: openai.OpenAI, heard: Heard, stop: int | None) -> None:
    """Read events; up to ``stop`` of them if that is given."""
    if heard.response is None:
        heard.events.clear()
        stream: Iterable[ResponseStreamEvent] = client.responses.create(
            input="hello", stream=True, extra_headers={"Idempotency-Key": "once"}
        )
    else:
        stream = client.responses.retrieve(
            heard.response, stream=True, starting_after=heard.events[-1].sequence_number
        )
    for number, event in enumerate(stream):
        if stop is not None and number >= stop:
            return
        heard.events.append(event)


def _judge(client: openai.OpenAI, heard: Heard) -> list[str]:
    """Return a sentence for each thing that is not as it has to be."""
    numbers = [event.sequence_number for event in heard.events]
    told = "".join(one.delta for one in heard.events if one.type == "response.output_text.delta")
    assert heard.response is not None
    kept = client.responses.retrieve(heard.response)
    again = client.responses.create(input="hello", extra_headers={"Idempotency-Key": "once"})
    assert kept.conversation is not None
    items = client.conversations.items.list(kept.conversation.id, order="asc").data
    checks = {
        "an event came twice, or out of its order": numbers == sorted(set(numbers)),
        f"the text that was told is {told!r}": told == WORDS,
        f"the text that is kept is {kept.output_text!r}": kept.output_text == WORDS,
        "the key made another response": again.id == heard.response,
        f"the conversation has {[one.type for one in items]}": [
            getattr(one, "role", None) for one in items
        ]
        == ["user", "assistant"],
    }
    return [said for said, holds in checks.items() if not holds]
