"""Instructions of features, rendered before the first request of a session."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

import structlog

from clew.core.session_prefix import FEATURE, InstructionPart
from clew.plugin.turn_context import get_turn_context

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.plugin.declarations import Instructions

log = structlog.get_logger(__name__)

#: Seconds that a feature may take, and the characters that it may add.
MAX_SECONDS, MAX_CHARS = 5.0, 40_000


async def render_instructions(declared: Iterable[Instructions]) -> list[InstructionPart]:
    """Return the parts of the features; one that fails or is late is left out and logged."""
    found = await asyncio.gather(*(_render_safely(one) for one in declared))
    return [part for part in found if part is not None]


async def _render_safely(declared: Instructions) -> InstructionPart | None:
    try:
        text = await asyncio.wait_for(_render(declared), MAX_SECONDS)
    except Exception as error:  # noqa: BLE001  (the code of a feature may raise anything)
        log.warning("instructions_failed", name=declared.name, error=repr(error))
        return None
    if not text:
        return None
    if len(text) > MAX_CHARS:
        log.warning("instructions_cut", name=declared.name, characters=len(text), kept=MAX_CHARS)
    return InstructionPart(name=FEATURE + declared.name, text=text[:MAX_CHARS], dynamic=True)


async def _render(declared: Instructions) -> str | None:
    wants_context = bool(inspect.signature(declared.render).parameters)
    made: Any = declared.render(get_turn_context()) if wants_context else declared.render()
    if inspect.isawaitable(made):
        made = await made
    if made is not None and not isinstance(made, str):
        raise TypeError(f"a text or None was expected, not {type(made).__name__}")
    return made
