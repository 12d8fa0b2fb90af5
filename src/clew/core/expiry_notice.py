"""Record, in an input, of the expired conversation that it replaced."""

from __future__ import annotations

import json
from typing import Any

from clew.record import Record

_KEY = "left"


class ExpiredConversation(Record):
    """Previous conversation of an input's route, and why it ended."""

    conversation: str
    reason: str


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
