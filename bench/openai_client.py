"""An agent's run as its context grows, with the official OpenAI client and with ours."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    UserPromptPart,
)
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from clew.agent.openai_client import OpenAIClient

if TYPE_CHECKING:
    from collections.abc import Generator

#: Messages of context, and the milliseconds of a run to reach with our client.
TARGETS = {2: 3.3, 200: 4.8, 400: 7.1, 800: 11.5}
KINDS = {"chat": OpenAIChatModel, "responses": OpenAIResponsesModel}
WARM_UP = 5


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Medians of a run in milliseconds."""

    api: str
    messages: int
    official: float
    ours: float
    #: CPU time of this process, which a busy machine disturbs less.
    official_cpu: float
    our_cpu: float


def run(rounds: int = 30) -> list[Figures]:
    """Measure and print; the clients take turns."""
    found = [asyncio.run(compare(api, length, rounds)) for api in KINDS for length in TARGETS]
    print("ms a run   messages  official   ours  ratio  target |  CPU official   ours  ratio")
    for f in found:
        print(
            f"{f.api:10}{f.messages:>9}{f.official:>10.1f}{f.ours:>7.1f}{f.official / f.ours:>7.1f}"
            f"{TARGETS[f.messages]:>8.1f} | {f.official_cpu:>13.1f}{f.our_cpu:>7.1f}"
            f"{f.official_cpu / f.our_cpu:>7.1f}"
        )
    return found


async def compare(api: str, length: int, rounds: int) -> Figures:
    history = conversation(length)
    async with AsyncExitStack() as stack:
        # One for each comparison: it keeps what it saw, and slows down as that grows.
        url = stack.enter_context(provider())
        agents = list[Agent]()
        for client_class in (AsyncOpenAI, OpenAIClient):
            client = client_class(base_url=url, api_key="none", max_retries=0)
            await stack.enter_async_context(client)
            agents.append(Agent(KINDS[api]("m", provider=OpenAIProvider(openai_client=client))))
        taken = [
            (*await timed(agents[0], history), *await timed(agents[1], history))
            for _ in range(WARM_UP + rounds)
        ]
    official, official_cpu, ours, our_cpu = map(
        statistics.median, zip(*taken[WARM_UP:], strict=True)
    )
    return Figures(
        api=api,
        messages=length,
        official=official,
        ours=ours,
        official_cpu=official_cpu,
        our_cpu=our_cpu,
    )


async def timed(agent: Agent, history: list[ModelMessage]) -> tuple[float, float]:
    """Milliseconds of a run, and of them on the CPU."""
    start, cpu = time.perf_counter(), time.process_time()
    await agent.run("go on", message_history=history)
    return (time.perf_counter() - start) * 1000, (time.process_time() - cpu) * 1000


def conversation(length: int) -> list[ModelMessage]:
    """So many messages of some 200 characters."""
    return [
        ModelRequest(parts=[UserPromptPart(f"Question {number}. " * 15)])
        if number % 2 == 0
        else ModelResponse(parts=[TextPart(f"The answer {number}. " * 12)])
        for number in range(length)
    ]


@contextmanager
def provider() -> Generator[str]:
    """Yield the URL of a fake provider that takes no time from the measured process."""
    command = [sys.executable, "-m", "clew.testing.provider"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"{process.stdout.readline().strip()}/v1"
        finally:
            process.terminate()


if __name__ == "__main__":
    run()
