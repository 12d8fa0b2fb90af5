"""Messages of plugins to the model of a conversation."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import structlog

from clew.plugin import get_turn_context

if TYPE_CHECKING:
    from clew.features.hermes.state import HostState

log = structlog.get_logger(__name__)

#: Characters of a message.
_MAX_CHARS: Final = 8_000


def inject_message(state: HostState, text: str) -> bool:
    """
    Tell the model of the calling turn's conversation; ``False`` outside of one.

    The text joins the running turn or begins one, and counts as text of strangers.
    """
    context = get_turn_context()
    if context is None or state.loop is None or not text.strip():
        log.warning("hermes_message_not_injected", detail="no turn calls the plugin")
        return False
    waking = context.services.wake(
        context.conversation,
        kind="hermes",
        id=uuid4().hex,
        text=text[:_MAX_CHARS],
        turn=context.turn,
        untrusted=True,
    )
    asyncio.run_coroutine_threadsafe(waking, state.loop)
    return True
