"""Note to the model that a person switched models."""

from __future__ import annotations

import json
from typing import Any

_KEY = "model_changed"


def attach_model_change(payload: str, *, before: str, after: str) -> str:
    """Return the input's payload with the model change recorded in it."""
    given: dict[str, Any] = json.loads(payload)
    return json.dumps({**given, _KEY: [before, after]})


def read_model_change(payload: str) -> str | None:
    """Return the note to the model that an input's payload calls for."""
    if f'"{_KEY}"' not in payload:
        return None
    before, after = json.loads(payload).get(_KEY) or (None, None)
    if before is None:
        return None
    return (
        f"[Note: the person changed the model of this conversation from {before} to {after}. What "
        "was answered before this message was answered by the other model.]"
    )
