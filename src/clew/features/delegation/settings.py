"""The settings of delegation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from clew.config.builtin_types import DURATION, integer_type
from clew.config.fields import setting


@dataclass(frozen=True, kw_only=True, slots=True)
class DelegationSettings:
    """Agents that work for others."""

    tokens: int = setting(
        integer_type(least=1000, unit="tokens"),
        500_000,
        "Tokens that a task may use, those of its own tasks included. Then it is told to answer "
        "with what it has; two steps later it is stopped.",
    )
    steps: int = setting(
        integer_type(least=1, unit="steps"),
        100,
        "Model requests that a task may use; its end is the same.",
    )
    at_once: int = setting(
        integer_type(least=1, most=100, unit="tasks"),
        5,
        "Tasks of one conversation, and of those below it, that run at once. One that waits for "
        "a task of its own does not count.",
    )
    depth: int = setting(
        integer_type(least=1, most=10, unit="levels"),
        3,
        "How far tasks may be nested: with 3, the task of a task may have tasks.",
    )
    wait: timedelta = setting(  # noqa: RUF009  (nothing is called)
        DURATION,
        timedelta(minutes=8),
        "How long the agent waits for a task in the foreground, and a task for its place. After "
        "that the task goes on in the background, and its answer comes as a message.",
    )
