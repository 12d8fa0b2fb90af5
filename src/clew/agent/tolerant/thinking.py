"""Thinking that a server leaves in the text, between tags or before a closing tag alone."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

__all__ = ["CLOSE", "OPEN", "Said", "ThinkingSplitter", "lone_close", "split_thinking"]

OPEN, CLOSE = "<think>", "</think>"
_TAGS = {
    OPEN: CLOSE,
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
}
#: In the midst of a text only this one opens, at the beginning of a line.
_AGAIN = "\n" + OPEN
#: A tag in quotation marks is spoken about.
_LONE = re.compile("(?<![`'\"])(?:</think>|◁/think▷)(?![`'\"])")
_FENCE = "```"


class Said(NamedTuple):
    """A piece of what a model says."""

    kind: Literal["text", "thinking"]
    text: str


def lone_close(text: str) -> re.Match[str] | None:
    """Return the closing tag of thinking that was never opened, if the text has one."""
    if "/think" not in text:
        return None
    found = _LONE.search(text)
    if found is None or _is_code(before := text[: found.start()]) or OPEN in before:
        return None
    return found


def split_thinking(text: str, *, thinks_first: bool = False) -> list[Said]:
    """Return the thinking and the text of a whole answer, in order."""
    if not any(close in text for close in _TAGS.values()) and not _opens(text):
        return [Said("text", text)]
    if (lone := lone_close(text)) is not None and not _opens(text):
        rest = text[lone.end() :].lstrip()
        return _without_blanks([Said("thinking", text[: lone.start()]), *split_thinking(rest)])
    splitter = ThinkingSplitter(thinks_first=thinks_first)
    return _without_blanks([*splitter.feed(text), *splitter.end()])


class ThinkingSplitter:
    """
    Splits a text that comes in pieces.

    Thinking opens at the beginning of the text, or with ``<think>`` at the beginning of a line that
    is no code. With ``thinks_first`` the text begins with thinking, as that of a server whose
    template opens the tag itself.
    """

    def __init__(self, *, thinks_first: bool = False) -> None:
        self._close: str | None = CLOSE if thinks_first else None
        self._assumed = thinks_first
        #: Nothing but blanks was said since the beginning, or since thinking ended.
        self._blank = True
        self._held: str = ""
        self._thought: list[str] = []
        self._spoke = False
        self._fences = 0

    def feed(self, piece: str) -> list[Said]:
        """Return what can be told of the text so far."""
        if self.passes(piece):
            return [Said("text", piece)]
        self._held += piece
        said: list[Said] = []
        while (step := self._step()) is not None:
            said += [step] if step.text else []
        return said

    def passes(self, piece: str) -> bool:
        """Return whether a piece is text in the midst of text; then it counts as fed."""
        if self._close is not None or self._blank or self._held or not _is_plain(piece):
            return False
        self._text(piece)
        return True

    def end(self, *, called: bool = False) -> list[Said]:
        """
        Return what is left, at the proper end of the text.

        Thinking that nothing ended, with no word after it, was the answer; unless a tool was
        ``called`` and the thinking was opened in words.
        """
        rest, self._held = self._held, ""
        if self._close is None:
            return [self._text(rest)] if rest else []
        thought = [Said("thinking", rest)] if rest else []
        self._thought.append(rest)
        answer = "".join(self._thought).strip()
        if not answer or self._spoke or (called and not self._assumed):
            return thought
        return [*thought, Said("text", answer)]

    def _step(self) -> Said | None:
        if self._close is not None:
            return self._think(self._close)
        return self._begin() if self._blank else self._speak()

    def _think(self, close: str) -> Said | None:
        if not self._held:
            return None
        before, found, after = self._held.partition(close)
        if found:
            self._held, self._close, self._blank, self._assumed = after, None, True, False
            return self._thinking(before)
        kept = _partial(self._held, close)
        text, self._held = self._held[: len(self._held) - kept], self._held[-kept:] if kept else ""
        return self._thinking(text) if text else None

    def _begin(self) -> Said | None:
        bare = self._held.lstrip()
        if not bare:
            return None
        for opening, closing in _TAGS.items():
            if bare.startswith(opening):
                self._held, self._close = bare[len(opening) :], closing
                return Said("thinking", "")
            if self._thought and bare.startswith(closing):
                self._held = bare[len(closing) :]
                return Said("text", "")
            if opening.startswith(bare) or (self._thought and closing.startswith(bare)):
                return None
        self._blank = False
        if self._thought:
            self._held = bare
        return Said("text", "")

    def _speak(self) -> Said | None:
        if not self._held:
            return None
        at = self._held.find(_AGAIN)
        if at >= 0 and not self._is_code(self._held[:at]):
            text, self._held = self._held[: at + 1], self._held[at + len(_AGAIN) :]
            self._close = CLOSE
            return self._text(text)
        kept = 0 if at >= 0 else _partial(self._held, _AGAIN)
        text, self._held = self._held[: len(self._held) - kept], self._held[-kept:] if kept else ""
        return self._text(text) if text else None

    def _text(self, text: str) -> Said:
        self._spoke = self._spoke or bool(text.strip())
        self._fences += text.count(_FENCE)
        return Said("text", text)

    def _thinking(self, text: str) -> Said:
        self._thought.append(text)
        return Said("thinking", text)

    def _is_code(self, text: str) -> bool:
        return (self._fences + text.count(_FENCE)) % 2 == 1


def _partial(text: str, tag: str) -> int:
    """How many characters at the end of the text may be the beginning of the tag."""
    most = min(len(tag) - 1, len(text))
    return next((n for n in range(most, 0, -1) if text.endswith(tag[:n])), 0)


def _is_plain(piece: str) -> bool:
    return bool(piece) and "<" not in piece and not piece.endswith("\n")


def _opens(text: str) -> bool:
    return text.lstrip().startswith(tuple(_TAGS)) or _AGAIN in text


def _is_code(text: str) -> bool:
    return text.count(_FENCE) % 2 == 1


def _without_blanks(said: list[Said]) -> list[Said]:
    return [one for one in said if one.text.strip()]
