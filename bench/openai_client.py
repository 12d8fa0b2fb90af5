"""What an agent's run costs at a length of context, with the official OpenAI client and with ours."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, TypeAlias

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
    from collections.abc import Iterator

#: Messages of context, and the milliseconds of a run to reach with our client.
TARGETS = {2: 3.3, 200: 4.8, 400: 7.1, 800: 11.5}
KINDS = {"chat": OpenAIChatModel, "responses": OpenAIResponsesModel}
WARM_UP = 5

#: Milliseconds of a run with the official client and with ours, by API and messages.
Figures: TypeAlias = dict[tuple[str, int], tuple[float, float]]


def run(rounds: int = 30) -> Figures:
    """Measure and print; the provider is a process of its own, the clients take turns."""
    with provider() as url:
        figures = asyncio.run(measure(url, rounds))
    print(
        f"{'':10}{'messages':>9}{'official':>10}{'ours':>8}{'ratio':>7}{'target':>8}   (ms a run)"
    )
    for (api, length), (official, ours) in figures.items():
        print(
            f"{api:10}{length:>9}{official:>10.1f}{ours:>8.1f}{official / ours:>7.1f}"
            f"{TARGETS[length]:>8.1f}"
        )
    return figures


async def measure(url: str, rounds: int) -> Figures:
    return {
        (api, length): await compare(url, api, length, rounds)
        for api in KINDS
        for length in TARGETS
    }


async def compare(url: str, api: str, length: int, rounds: int) -> tuple[float, float]:
    """The medians for both clients."""
    history = conversation(length)
    async with AsyncExitStack() as stack:
        agents = list[Agent]()
        for client_class in (AsyncOpenAI, OpenAIClient):
            client = client_class(base_url=url, api_key="none", max_retries=0)
            await stack.enter_async_context(client)
            agents.append(Agent(KINDS[api]("m", provider=OpenAIProvider(openai_client=client))))
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(WARM_UP + rounds):
            for agent, taken in zip(agents, times, strict=True):
                start = time.perf_counter()
                await agent.run("go on", message_history=history)
                taken.append((time.perf_counter() - start) * 1000)
    official, ours = (statistics.median(taken[WARM_UP:]) for taken in times)
    return official, ours


def conversation(length: int) -> list[ModelMessage]:
    """So many messages of some 200 characters."""
    return [
        ModelRequest(parts=[UserPromptPart(f"Question {number}. " * 15)])
        if number % 2 == 0
        else ModelResponse(parts=[TextPart(f"The answer {number}. " * 12)])
        for number in range(length)
    ]


@contextmanager
def provider() -> Iterator[str]:
    """The URL of a fake provider that takes no time from the process that is measured."""
    command = [sys.executable, "-m", "clew.testing.provider"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"{process.stdout.readline().strip()}/v1"
        finally:
            process.terminate()


if __name__ == "__main__":
    run()
