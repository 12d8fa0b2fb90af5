"""Conversations as another system could have stored them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from clew.core.entry import Role
from clew.foreign.conversations import (
    ForeignCall,
    ForeignCompaction,
    ForeignConversation,
    ForeignEvent,
    ForeignFile,
    ForeignMessage,
    ForeignResult,
    ForeignSender,
    ForeignUsage,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.route import Route
    from clew.foreign.conversations import ForeignItem

#: A Monday in 2026, in milliseconds.
BEGUN = 1_767_600_000_000
PICTURE = bytes.fromhex("89504e470d0a1a0a") + b"\0" * 64


def tell(
    name: str,
    *,
    steps: int = 30,
    seed: int = 0,
    routes: Sequence[Route] = (),
    growing: bool = False,
) -> ForeignConversation:
    """Return a conversation with tools, files, summaries, gaps and things of other kinds."""
    dice = random.Random(f"{name}{seed}")
    items: list[ForeignItem] = []
    for step in range(steps):
        items += _tell_step(name, step, dice)
    return ForeignConversation(
        id=name,
        title=f"About {name}",
        created_at=BEGUN,
        items=items,
        routes=routes,
        is_growing=growing,
    )


def _tell_step(name: str, step: int, dice: random.Random) -> list[ForeignItem]:
    at, key = BEGUN + step * 60_000, f"{step}"
    question = ForeignMessage(
        id=f"{key}u",
        role=Role.USER,
        at=at,
        text=f"What about {name} {step}?",
        sender=ForeignSender(id="42", name="Ada"),
        files=_tell_files(dice),
    )
    answer = ForeignMessage(
        id=f"{key}a",
        role=Role.ASSISTANT,
        at=at + 9_000,
        text=f"Answer {step} about {name}.",
        reasoning="I thought about it." if dice.random() < 0.3 else "",
        model="openai:gpt-x",
        usage=ForeignUsage(input_tokens=10, output_tokens=5, cost_micros=7),
    )
    return [question, *_tell_tools(key, at, dice), answer, *_tell_others(key, at, dice)]


def _tell_files(dice: random.Random) -> tuple[ForeignFile, ...]:
    if dice.random() > 0.15:
        return ()
    lost = ForeignFile(name="lost.pdf", media_type="application/pdf", content=None)
    return (ForeignFile(name="red.png", media_type="image/png", content=PICTURE), lost)


def _tell_tools(key: str, at: int, dice: random.Random) -> list[ForeignItem]:
    if dice.random() > 0.4:
        return []
    calls = tuple(
        ForeignCall(id=f"call_{number}", name="look", arguments='{"at":"it"}')
        for number in range(dice.randint(1, 3))
    )
    step = ForeignMessage(id=f"{key}c", role=Role.ASSISTANT, at=at + 3_000, calls=calls)
    results = [
        ForeignMessage(
            id=f"{key}r{number}",
            role=Role.TOOL,
            at=at + 6_000,
            results=(ForeignResult(call_id=call.id, name="look", text=f"seen {key}{number}"),),
        )
        for number, call in enumerate(calls)
        if dice.random() < 0.9
    ]
    return [step, *results]


def _tell_others(key: str, at: int, dice: random.Random) -> list[ForeignItem]:
    if dice.random() < 0.1:
        kept = None if dice.random() < 0.5 else f"{key}u"
        summary = f"They spoke of many things until {key}."
        return [ForeignCompaction(id=f"{key}s", at=at, summary=summary, kept_from=kept)]
    if dice.random() < 0.1:
        return [ForeignEvent(id=f"{key}e", at=at, kind="model-change", text="The model changed.")]
    return []
