"""A crowd that talks to a gateway: tiny messages in several conversations, several at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from httpx2 import AsyncClient


async def talk_to(
    http: AsyncClient, *, messages: int, conversations: int, at_once: int
) -> list[str]:
    """Say them all to a model that repeats what it hears; what was not answered as it should be."""
    wrong: list[str] = []
    numbers = iter(range(messages))

    async def person() -> None:
        for number in numbers:
            answer = await http.post(
                "/v1/chat/completions",
                json={"messages": [{"role": "user", "content": f"m{number}"}]},
                headers={"X-Clew-Conversation": f"talk{number % conversations}"},
                timeout=60,
            )
            if answer.status_code != 200:
                wrong.append(f"{number}: {answer.status_code} {answer.text}")
            elif (
                said := answer.json()["choices"][0]["message"]["content"]
            ) != f"You said: m{number}":
                wrong.append(f"{number}: {said}")

    async with asyncio.TaskGroup() as tasks:
        for n in range(at_once):
            tasks.create_task(person(), name=f"person {n}")
    return wrong
