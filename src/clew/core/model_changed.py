"""Record, in an input, that a person switched models before it."""

from __future__ import annotations

import json
from typing import Any

_KEY = "model_changed"


def attach_model_change(payload: str, *, before: str, after: str) -> str:
    """Return the input's payload with the model change recorded in it."""
    given: dict[str, Any] = json.loads(payload)
    return json.dumps({**given, _KEY: [before, after]})


def read_model_change(payload: str) -> tuple[str, str] | None:
    """Return the models before and after the change that an input's payload records."""
    if f'"{_KEY}"' not in payload:
        return None
    changed: list[str] | None = json.loads(payload).get(_KEY)
    return None if changed is None else (changed[0], changed[1])
