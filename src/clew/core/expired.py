"""What is said where a new conversation has begun by itself, because the one before was over."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from clew.core.session import DAILY, IDLE, RESET

#: Told in a chat whose conversation another front deleted, or brought back.
DELETED = "This conversation was deleted elsewhere. Your next message starts a new one."
RESTORED = "The conversation that was deleted here is back: your next message goes on with it."

_WHEN = {IDLE: " after a pause", DAILY: " with the daily reset"}
_KEY = "left"


@dataclass(frozen=True, kw_only=True, slots=True)
class Left:
    """The conversation that an input would have gone to, and why that one is over."""

    conversation: str
    reason: str

    @property
    def to_person(self) -> str:
        return (
            f"A new conversation has begun{self._when}; /resume {self.conversation} goes on with "
            "the one before."
        )

    @property
    def to_model(self) -> str:
        return (
            f"This conversation has just begun. The one before it ended{self._when}, and nothing "
            "that was said in it is known to you. If the person refers to it, say so and do not "
            f"guess: with /resume {self.conversation} they go on there."
        )

    @property
    def _when(self) -> str:
        return _WHEN.get(self.reason, "")


def closed_elsewhere(conversation: str, reason: str) -> str | None:
    """Return what a chat is told at once whose conversation another front has ended."""
    if reason in _WHEN:
        # Told with the next message: nobody is woken by it.
        return None
    if reason == RESET:
        return (
            "This conversation was ended elsewhere. Your next message starts a new one; "
            f"/resume {conversation} goes on with this one."
        )
    return "This conversation was closed elsewhere. Your next message goes on with it."


def with_left(payload: str, left: Left) -> str:
    """The payload of an input, which says from now on what was left for it."""
    given: dict[str, Any] = json.loads(payload)
    return json.dumps({**given, _KEY: [left.conversation, left.reason]})


def left_for(payload: str) -> Left | None:
    """What was left for an input with this payload."""
    if f'"{_KEY}"' not in payload:
        return None
    conversation, reason = json.loads(payload).get(_KEY) or (None, "")
    return None if conversation is None else Left(conversation=conversation, reason=reason)
