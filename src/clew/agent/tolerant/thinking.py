"""Extraction of thinking from text, between tags or before a lone closing tag."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

__all__ = [
    "CLOSE_TAG",
    "OPEN_TAG",
    "ContentSegment",
    "ThinkingSplitter",
    "find_lone_close",
    "split_thinking",
]

OPEN_TAG, CLOSE_TAG = "<think>", "</think>"
_CLOSING_TAGS = {
    OPEN_TAG: CLOSE_TAG,
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
}
#: Inside a text only this tag opens thinking, at the start of a line.
_INNER_OPEN = "\n" + OPEN_TAG
#: A quoted tag is part of the text.
_LONE_CLOSE = re.compile("(?<![`'\"])(?:</think>|◁/think▷)(?![`'\"])")
_FENCE = "```"


class ContentSegment(NamedTuple):
    """A piece of a model's output."""

    kind: Literal["text", "thinking"]
    text: str


def find_lone_close(text: str) -> re.Match[str] | None:
    """Return the closing tag of thinking that was never opened, if the text has one."""
    if "/think" not in text:
        return None
    found = _LONE_CLOSE.search(text)
    if found is None or _ends_in_code(before := text[: found.start()]) or OPEN_TAG in before:
        return None
    return found


def split_thinking(text: str, *, thinks_first: bool = False) -> list[ContentSegment]:
    """Return the thinking and the text of a whole answer, in order."""
    if not any(close in text for close in _CLOSING_TAGS.values()) and not _has_opening_tag(text):
        return [ContentSegment("text", text)]
    if (lone := find_lone_close(text)) is not None and not _has_opening_tag(text):
        rest = text[lone.end() :].lstrip()
        return _drop_blank_segments(
            [ContentSegment("thinking", text[: lone.start()]), *split_thinking(rest)]
        )
    splitter = ThinkingSplitter(thinks_first=thinks_first)
    return _drop_blank_segments([*splitter.feed_piece(text), *splitter.flush_rest()])


class ThinkingSplitter:
    """
    Splitter of a text in pieces.

    Thinking opens at the start of the text, or with ``<think>`` at the start of a line
    outside of code. With ``thinks_first`` the text starts with thinking, as from a server
    whose template opens the tag itself.
    """

    def __init__(self, *, thinks_first: bool = False) -> None:
        self._closing_tag: str | None = CLOSE_TAG if thinks_first else None
        self._is_assumed = thinks_first
        #: Only blanks came since the start, or since thinking ended.
        self._is_blank = True
        self._held: str = ""
        self._thinking_pieces: list[str] = []
        self._has_text = False
        self._fence_count = 0

    def feed_piece(self, piece: str) -> list[ContentSegment]:
        """Return the segments available so far."""
        if self.try_pass_through(piece):
            return [ContentSegment("text", piece)]
        self._held += piece
        said: list[ContentSegment] = []
        while (step := self._next_segment()) is not None:
            said += [step] if step.text else []
        return said

    def try_pass_through(self, piece: str) -> bool:
        """Return whether a piece is text in the middle of text; it then counts as fed."""
        if (
            self._closing_tag is not None
            or self._is_blank
            or self._held
            or not _is_plain_piece(piece)
        ):
            return False
        self._make_text(piece)
        return True

    def flush_rest(self, *, called: bool = False) -> list[ContentSegment]:
        """
        Return the rest, at the regular end of the text.

        Unclosed thinking without any text was the answer, unless a tool was ``called`` and
        the text contained the opening tag.
        """
        rest, self._held = self._held, ""
        if self._closing_tag is None:
            return [self._make_text(rest)] if rest else []
        thought = [ContentSegment("thinking", rest)] if rest else []
        self._thinking_pieces.append(rest)
        answer = "".join(self._thinking_pieces).strip()
        if not answer or self._has_text or (called and not self._is_assumed):
            return thought
        return [*thought, ContentSegment("text", answer)]

    def _next_segment(self) -> ContentSegment | None:
        if self._closing_tag is not None:
            return self._read_thinking(self._closing_tag)
        return self._read_start() if self._is_blank else self._read_text()

    def _read_thinking(self, close: str) -> ContentSegment | None:
        if not self._held:
            return None
        before, found, after = self._held.partition(close)
        if found:
            self._held, self._closing_tag, self._is_blank, self._is_assumed = (
                after,
                None,
                True,
                False,
            )
            return self._make_thinking(before)
        kept = _partial_tag_length(self._held, close)
        text, self._held = self._held[: len(self._held) - kept], self._held[-kept:] if kept else ""
        return self._make_thinking(text) if text else None

    def _read_start(self) -> ContentSegment | None:
        bare = self._held.lstrip()
        if not bare:
            return None
        for opening, closing in _CLOSING_TAGS.items():
            if bare.startswith(opening):
                self._held, self._closing_tag = bare[len(opening) :], closing
                return ContentSegment("thinking", "")
            if self._thinking_pieces and bare.startswith(closing):
                self._held = bare[len(closing) :]
                return ContentSegment("text", "")
            if opening.startswith(bare) or (self._thinking_pieces and closing.startswith(bare)):
                return None
        self._is_blank = False
        if self._thinking_pieces:
            self._held = bare
        return ContentSegment("text", "")

    def _read_text(self) -> ContentSegment | None:
        if not self._held:
            return None
        at = self._held.find(_INNER_OPEN)
        if at >= 0 and not self._is_in_code(self._held[:at]):
            text, self._held = self._held[: at + 1], self._held[at + len(_INNER_OPEN) :]
            self._closing_tag = CLOSE_TAG
            return self._make_text(text)
        kept = 0 if at >= 0 else _partial_tag_length(self._held, _INNER_OPEN)
        text, self._held = self._held[: len(self._held) - kept], self._held[-kept:] if kept else ""
        return self._make_text(text) if text else None

    def _make_text(self, text: str) -> ContentSegment:
        self._has_text = self._has_text or bool(text.strip())
        self._fence_count += text.count(_FENCE)
        return ContentSegment("text", text)

    def _make_thinking(self, text: str) -> ContentSegment:
        self._thinking_pieces.append(text)
        return ContentSegment("thinking", text)

    def _is_in_code(self, text: str) -> bool:
        return (self._fence_count + text.count(_FENCE)) % 2 == 1


def _partial_tag_length(text: str, tag: str) -> int:
    """Return how many characters at the end of the text may begin the tag."""
    most = min(len(tag) - 1, len(text))
    return next((n for n in range(most, 0, -1) if text.endswith(tag[:n])), 0)


def _is_plain_piece(piece: str) -> bool:
    return bool(piece) and "<" not in piece and not piece.endswith("\n")


def _has_opening_tag(text: str) -> bool:
    return text.lstrip().startswith(tuple(_CLOSING_TAGS)) or _INNER_OPEN in text


def _ends_in_code(text: str) -> bool:
    return text.count(_FENCE) % 2 == 1


def _drop_blank_segments(said: list[ContentSegment]) -> list[ContentSegment]:
    return [one for one in said if one.text.strip()]
