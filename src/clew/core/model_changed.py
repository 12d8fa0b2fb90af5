"""What a model is told where a person has chosen it in place of the one before."""

from __future__ import annotations

import json
from typing import Any

_KEY = "model_changed"


def with_model_changed(payload: str, *, before: str, after: str) -> str:
    """Return the payload of an input, which says from now on that the model was changed."""
    given: dict[str, Any] = json.loads(payload)
    return json.dumps({**given, _KEY: [before, after]})


def model_changed(payload: str) -> str | None:
    """Return what the model is told with an input of this payload."""
    if f'"{_KEY}"' not in payload:
        return None
    before, after = json.loads(payload).get(_KEY) or (None, None)
    if before is None:
        return None
    return (
        f"[Note: the person changed the model of this conversation from {before} to {after}. What "
        "was answered before this message was answered by the other model.]"
    )
