"""
Histories held by clients that resend the whole conversation.

Two histories are equal if the same speakers wrote the same words and sent the same files.
White space does not count, and consecutive messages of one speaker count as one, because
clients strip and join freely.
"""

from __future__ import annotations

import hashlib
import json
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from clew.core.attachments import FetchedFile

Speaker = Literal["system", "user", "assistant"]


class HistoryMessage(Record, kw_only=False):
    """One message of a history."""

    speaker: Speaker
    text: str
    #: The files that came with it.
    files: tuple[FetchedFile, ...] = ()


def drop_blank_messages(history: Iterable[HistoryMessage]) -> tuple[HistoryMessage, ...]:
    """Return the messages that have text or files: no provider accepts the others."""
    return tuple(said for said in history if said.text.strip() or said.files)


def split_last_answer(history: Sequence[HistoryMessage]) -> tuple[Sequence[HistoryMessage], str]:
    """Return the history up to the last question, and the text of the answer after it."""
    end = len(history)
    while end and history[end - 1].speaker == "assistant":
        end -= 1
    return history[:end], normalize_words(said.text for said in history[end:])


def normalize_words(texts: Iterable[str]) -> str:
    """Return the words of consecutive texts, separated by single spaces."""
    return " ".join(" ".join(texts).split())


def is_answer(heard: str, texts: Sequence[str]) -> bool:
    """
    Return whether ``heard`` is a client's copy of an answer with these texts.

    A stream includes the texts beside tool calls, a plain answer only the last one.
    """
    texts = [text for text in texts if text.strip()]
    return heard in {normalize_words(texts), normalize_words(texts[-1:])}


def history_digest(caller: str, history: Iterable[HistoryMessage]) -> bytes:
    """Return the sha256 of the caller and the history."""
    joined = [
        _digest_item(speaker, list(said))
        for speaker, said in groupby(history, key=lambda said: said.speaker)
    ]
    return hashlib.sha256(json.dumps([caller, joined]).encode()).digest()


def _digest_item(speaker: str, said: Sequence[HistoryMessage]) -> list[object]:
    words = " ".join(normalize_words([one.text]) for one in said)
    contents = [file.content for one in said for file in one.files if file.content is not None]
    files = [hashlib.sha256(content).hexdigest() for content in contents]
    return [speaker, words, files] if files else [speaker, words]
