"""Notices about conversations that ended automatically or on another front."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from clew.core.session import DAILY, IDLE

_WHEN = {IDLE: " after a pause", DAILY: " with the daily reset"}
_KEY = "left"


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpiredConversation:
    """Previous conversation of an input's route, and why it ended."""

    conversation: str
    reason: str

    @property
    def user_notice(self) -> str:
        return (
            f"A new conversation has begun{self._cause}; /resume {self.conversation} goes on with "
            "the one before."
        )

    @property
    def model_notice(self) -> str:
        return (
            f"This conversation has just begun. The one before it ended{self._cause}, and nothing "
            "that was said in it is known to you. If the person refers to it, say so and do not "
            f"guess: with /resume {self.conversation} they go on there."
        )

    @property
    def _cause(self) -> str:
        return _WHEN.get(self.reason, "")


def attach_notice(payload: str, left: ExpiredConversation) -> str:
    """Return the input's payload with the expired conversation recorded in it."""
    given: dict[str, Any] = json.loads(payload)
    return json.dumps({**given, _KEY: [left.conversation, left.reason]})


def read_notice(payload: str) -> ExpiredConversation | None:
    """Return the expired conversation recorded in an input's payload."""
    if f'"{_KEY}"' not in payload:
        return None
    conversation, reason = json.loads(payload).get(_KEY) or (None, "")
    return (
        None
        if conversation is None
        else ExpiredConversation(conversation=conversation, reason=reason)
    )
