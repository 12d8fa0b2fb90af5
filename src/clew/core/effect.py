"""Tool effects, and how a resumed turn treats an open call."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import cast


class Effect(enum.Enum):
    """Consequence of running a tool twice."""

    PURE = "pure"  #: nothing happens; run it again
    IDEMPOTENT = "idempotent"  #: run it again with the same key
    ONCE = "once"  #: never run it again
    ASK = "ask"  #: ask the user


class ResumeAction(enum.Enum):
    """Treatment of a call whose intent is stored and whose result is not."""

    RUN = "run"
    UNKNOWN = "unknown"
    ASK = "ask"


_RESUME = {
    Effect.PURE: ResumeAction.RUN,
    Effect.IDEMPOTENT: ResumeAction.RUN,
    Effect.ONCE: ResumeAction.UNKNOWN,
    Effect.ASK: ResumeAction.ASK,
}


def resume_action(effect: Effect) -> ResumeAction:
    """Return how to treat a call that a lost owner started."""
    return _RESUME[effect]


def effect_of(metadata: object) -> Effect:
    """
    Return the effect that a tool's metadata declares; ``once`` if it declares none.

    :raises ValueError: if the declared effect is unknown
    """
    if not isinstance(metadata, Mapping):
        return Effect.ONCE
    value = cast("Mapping[str, object]", metadata).get("effect")
    return Effect.ONCE if value is None else Effect(value)
