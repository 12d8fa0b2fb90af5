"""The settings of goals."""

from __future__ import annotations

from clew.config.builtin_types import MODEL, integer_type
from clew.config.fields import setting
from clew.record import Record


class GoalsSettings(Record):
    """Goals, towards which the agent goes on by itself."""

    judge: str | None = setting(
        MODEL,
        None,
        "The model that is asked after each round whether the goal is reached.",
        default_doc="only the agent says so",
    )
    rounds: int = setting(
        integer_type(least=1, most=1_000),
        20,
        "The rounds of a new goal; after so many it is paused. Resuming it allows as many again.",
    )
    budget: int = setting(
        integer_type(least=1),
        300_000,
        "The tokens of a new goal, read and written, its judge included; once they are spent no "
        "round begins and it is paused. Resuming it allows as many again. "
        "`agent.unattended_tokens` holds as well.",
    )
