"""Effects: what running a tool twice would mean, and what a resumed turn does with an open call."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import cast


class Effect(enum.Enum):
    PURE = "pure"  #: nothing happens; run it again
    IDEMPOTENT = "idempotent"  #: run it again with the same key
    ONCE = "once"  #: never run it again
    ASK = "ask"  #: ask the person


class Resume(enum.Enum):
    """What becomes of a call whose intent is stored and whose result is not."""

    RUN = "run"
    UNKNOWN = "unknown"
    ASK = "ask"


_RESUME = {
    Effect.PURE: Resume.RUN,
    Effect.IDEMPOTENT: Resume.RUN,
    Effect.ONCE: Resume.UNKNOWN,
    Effect.ASK: Resume.ASK,
}


def on_resume(effect: Effect) -> Resume:
    """What to do with a call that was begun by an owner that is gone."""
    return _RESUME[effect]


def declared(metadata: object) -> Effect:
    """
    The effect that a tool's metadata declares; an undeclared tool is ``once``.

    :raises ValueError: if it declares something that is no effect
    """
    if not isinstance(metadata, Mapping):
        return Effect.ONCE
    value = cast("Mapping[str, object]", metadata).get("effect")
    return Effect.ONCE if value is None else Effect(value)
