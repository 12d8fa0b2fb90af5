"""The settings of delegation."""

from __future__ import annotations

from datetime import timedelta

from clew.config.builtin_types import DURATION, MODEL, TEXT, TEXTS, choice_type, integer_type
from clew.config.fields import setting
from clew.core.sandbox_level import LEVELS
from clew.record import Record


class DelegationSettings(Record):
    """Agents that work for others."""

    tokens: int = setting(
        integer_type(least=1000, unit="tokens"),
        500_000,
        "Tokens that a task may use, those of its own tasks included. Then it is told to answer "
        "with what it has; two steps later it is stopped.",
        live=True,
    )
    steps: int = setting(
        integer_type(least=1, unit="steps"),
        100,
        "Model requests that a task may use; its end is the same.",
        live=True,
    )
    at_once: int = setting(
        integer_type(least=1, most=100, unit="tasks"),
        5,
        "Tasks of one conversation, and of those below it, that run at once. One that waits for "
        "a task of its own does not count.",
        live=True,
    )
    depth: int = setting(
        integer_type(least=1, most=10, unit="levels"),
        3,
        "How far tasks may be nested: with 3, the task of a task may have tasks.",
        live=True,
    )
    wait: timedelta = setting(
        DURATION,
        timedelta(minutes=8),
        "How long the agent waits for a task in the foreground, and a task for its place. After "
        "that the task goes on in the background, and its answer comes as a message.",
        live=True,
    )


class AgentKind(Record):
    """A kind of agent that `delegate` can choose for a task, by its name."""

    description: str | None = setting(
        TEXT, None, "What it is for; the model that gives tasks reads it to choose one."
    )
    instructions: str | None = setting(
        TEXT, None, "Instructions for the agent, at the end of those that every agent gets."
    )
    model: str | None = setting(
        MODEL,
        None,
        "The model that works on its tasks.",
        default_doc="the main model",
    )
    tools: tuple[str, ...] | None = setting(
        TEXTS,
        None,
        "Names of the tools that it has, of those that the agent which chooses it has.",
        default_doc="all of them",
    )
    level: str | None = setting(
        choice_type(LEVELS),
        None,
        "The sandbox level of its commands, as `sandbox.level`; one with more rights is refused.",
        default_doc="`sandbox.level`",
    )
    memory: str = setting(
        choice_type(["shared", "own", "none"]),
        "shared",
        "What it remembers of people and chats: `shared` is what every agent remembers of them, "
        "`own` what it was told itself, `none` nothing.",
    )
    tokens: int | None = setting(
        integer_type(least=1000, unit="tokens"),
        None,
        "As `delegation.tokens`, for its tasks; not more.",
        default_doc="`delegation.tokens`",
    )
    steps: int | None = setting(
        integer_type(least=1, unit="steps"),
        None,
        "As `delegation.steps`, for its tasks; not more.",
        default_doc="`delegation.steps`",
    )
