"""
Histories: what clients that resend everything hold of a conversation.

Two histories are the same if the same speakers said the same words. White space does not count,
and messages of one speaker in a row count as one: clients strip and join as they like.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Speaker = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a history."""

    speaker: Speaker
    text: str


def without_blanks(history: Iterable[Said]) -> tuple[Said, ...]:
    """The messages that say something: no provider takes the others."""
    return tuple(said for said in history if said.text.strip())


def asked(history: Sequence[Said]) -> tuple[Sequence[Said], str]:
    """A history up to what was last asked, and the words of the answer that follows, if any."""
    end = len(history)
    while end and history[end - 1].speaker == "assistant":
        end -= 1
    return history[:end], words(said.text for said in history[end:])


def words(texts: Iterable[str]) -> str:
    """The words of some texts in a row."""
    return " ".join(" ".join(texts).split())


def is_answer(heard: str, texts: Sequence[str]) -> bool:
    """
    Whether ``heard`` is what a client made of an answer with these texts.

    A stream tells the texts beside tool calls too, a plain answer only the last one.
    """
    texts = [text for text in texts if text.strip()]
    return heard in {words(texts), words(texts[-1:])}


def digest(caller: str, history: Iterable[Said]) -> bytes:
    """sha256 of who sends it and what was said."""
    joined: list[tuple[str, str]] = []
    for said in history:
        text = words([said.text])
        if joined and joined[-1][0] == said.speaker:
            joined[-1] = (said.speaker, f"{joined[-1][1]} {text}")
        else:
            joined.append((said.speaker, text))
    return hashlib.sha256(json.dumps([caller, joined]).encode()).digest()
