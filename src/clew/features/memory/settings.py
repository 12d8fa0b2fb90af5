"""The settings of memory."""

from __future__ import annotations

from datetime import timedelta

from clew.config.builtin_types import DURATION, FLAG, MODEL, TEXTS, choice_type, integer_type
from clew.config.fields import setting
from clew.record import Record


class MemorySettings(Record):
    """Memory of people and chats."""

    with_conversation: bool = setting(
        FLAG,
        False,
        "Forget what was taken from a conversation when that is deleted for good.",
        live=True,
    )
    files: bool = setting(
        FLAG,
        False,
        "Keep a file for each person and chat in `CLEW_HOME/memory`. Who edits it changes what is "
        "remembered: a new line is a new fact, and one that is removed is forgotten.",
        live=True,
    )
    recall: str = setting(
        choice_type(["tool", "auto"]),
        "tool",
        "`auto`: up to three facts about the first message of a session, beside those that each "
        "session is told, join it. The model can always look for more with `recall`.",
        live=True,
    )
    providers: tuple[str, ...] = setting(
        TEXTS,
        (),
        "Names of memory providers that plugins declare. What is remembered is kept there, too, "
        "and `recall` asks them as well.",
    )
    extract: str = setting(
        choice_type(["off", "ask", "on"]),
        "ask",
        "What becomes of facts that are found in what people said, when a conversation rests: "
        "`ask` proposes them to the person, `on` keeps them, `off` does not look for any. With "
        "`on`, what contradicts a pinned fact, or comes from a conversation that has read text of "
        "strangers, is proposed as well.",
        live=True,
    )
    extract_model: str | None = setting(
        MODEL, None, "The model that looks for facts.", default_doc="`model.name`", live=True
    )
    extract_after: timedelta = setting(
        DURATION, timedelta(minutes=30), "The pause after which a conversation rests.", live=True
    )
    extract_turns: int = setting(
        integer_type(least=1),
        20,
        "The number of answers after which it is looked for facts in a conversation without a "
        "pause.",
        live=True,
    )
