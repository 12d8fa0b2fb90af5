"""
Writing pieces as Markdown: for platforms that take text with marks in it.

What is written shows the same text: every sign that a reader could take for a mark is escaped, and
a format whose marks would not be seen as such in their place is left out. Nobody is mentioned.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from clew.gateway.text.pieces import Code, Frame, Piece, Quote, Run, Style
from clew.gateway.text.splitting import Cost, framed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

JOINER = "\N{WORD JOINER}"

#: An address as far as no reader takes a sign of it for a mark: it stays as it is, to be clicked.
_ADDRESS = re.compile(r"(https?://(?:[^\s<>\\*~`|\[\]&_]|(?<=\w)_(?=\w)|&(?!#?\w+;))+)")
_MARKS = re.compile(r"[\\`*_~|<\[\]&]")
_LINE_START = re.compile(r"^([ \t]*)([#>\-+=])", re.MULTILINE)
_NUMBERED = re.compile(r"^([ \t]*\d+)([.)])", re.MULTILINE)
_MENTION = re.compile(r"(?<!\w)@(?=\w)|@(?=everyone|here)")
_DEEP = re.compile(r"^ {4,}", re.MULTILINE)
_STYLES = ((Style.STRIKE, "~~"), (Style.BOLD, "**"), (Style.ITALIC, "*"))
_FENCE = "```"


def utf16(text: str) -> int:
    """The length of a text in UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def linkable(address: str) -> bool:
    """Whether an address may be hidden behind a text."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def escaped(text: str) -> str:
    """The text, so that a reader of Markdown shows it as it is; addresses stay as they are."""
    parts = _ADDRESS.split(text)
    for place in range(0, len(parts), 2):
        parts[place] = _MARKS.sub(r"\\\g<0>", parts[place])
    whole = "".join(parts)
    whole = _LINE_START.sub(r"\1\\\2", whole)
    whole = _NUMBERED.sub(r"\1\\\2", whole)
    whole = _MENTION.sub(f"@{JOINER}", whole)
    # Before a link it would make a picture of it.
    return re.sub(r"!\Z", r"\\!", whole)


class Marked:
    """How a platform counts that takes Markdown."""

    def __init__(self, length: Callable[[str], int] = utf16) -> None:
        self._length = length

    def run(self, run: Run, frame: Frame | None) -> Cost:
        if isinstance(frame, Code):
            return Cost(self._length(_in_fence(run.text)))
        # A joiner may have to stand before it.
        written = _core(run, _marks(run)) + JOINER
        quoted = 2 * written.count("\n") if isinstance(frame, Quote) else 0
        return Cost(self._length(written) + quoted)

    def frame(self, frame: Frame) -> Cost:
        if isinstance(frame, Code):
            return Cost(2 * len(_FENCE) + 2 + len(frame.language))
        return Cost(4)

    def links(self, address: str) -> bool:
        return linkable(address)

    def text(self, text: str) -> Cost:
        # Within a quote each line has a mark.
        return Cost(self._length(text) + 2 * text.count("\n"))


def write(part: Sequence[Piece]) -> str:
    """The text of one message."""
    written = ""
    for frame, pieces in framed(part):
        written += (pieces[0].glue if written else "") + _block(frame, pieces)
    return written


def _block(frame: Frame | None, pieces: Sequence[Piece]) -> str:
    if isinstance(frame, Code):
        lines = "\n".join(_in_fence(piece.text) for piece in pieces)
        return f"{_FENCE}{frame.language}\n{lines}\n{_FENCE}"
    text = ""
    for number, piece in enumerate(pieces):
        text += (piece.glue if number else "") + _line(piece.runs)
    # Else a line of a deep list would be code.
    text = _DEEP.sub(lambda found: "\N{NO-BREAK SPACE}" * len(found[0]), text)
    if isinstance(frame, Quote):
        text = "\n".join(f"> {line}" for line in text.split("\n"))
    return text


def _in_fence(text: str) -> str:
    return text.replace(_FENCE, f"``{JOINER}`")


def _line(runs: Sequence[Run]) -> str:
    text = ""
    for number, run in enumerate(runs):
        after = _first(runs[number + 1]) if number + 1 < len(runs) else ""
        marks = _marks(run)
        before = text[-1:]
        if before and before in "*~`" and _core(run, marks)[:1] == before:
            # Else the two would be taken for one mark.
            text += (before := JOINER)
        text += _core(run, marks if _seen(before, run, after) else "")
    return text


def _first(run: Run) -> str:
    """What stands behind the run before it; two marks are held apart."""
    marked = run.style is not Style.PLAIN and not run.text[:1].isspace()
    return JOINER if marked else run.text[:1]


def _marks(run: Run) -> str:
    if run.style & Style.CODE:
        return ""
    return "".join(mark for style, mark in _STYLES if run.style & style)


def _seen(before: str, run: Run, after: str) -> bool:
    """Whether marks around a run would be taken for marks by every reader."""
    core = run.text.strip()
    if not core:
        return False
    first, last = _core(Run(core, run.style, run.link), "")[:1], core[-1]
    opens = run.text[:1].isspace() or not _is_sign(first) or not _is_word(before)
    closes = run.text[-1:].isspace() or not (_is_sign(last) or run.link) or not _is_word(after)
    return opens and closes


def _is_sign(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def _is_word(character: str) -> bool:
    return bool(character) and not character.isspace() and not _is_sign(character)


def _core(run: Run, marks: str) -> str:
    core = run.text.strip()
    if not core:
        return run.text
    begins = run.text.index(core)
    before, behind = run.text[:begins], run.text[begins + len(core) :]
    inner = _code(core) if run.style & Style.CODE else escaped(core)
    if run.link is not None:
        inner = _linked(inner, core, run.link)
    return before + marks + inner + marks[::-1] + behind


def _code(text: str) -> str:
    text = text.replace("\n", " ")
    # Three in a row some readers take for the beginning of a block, wherever they stand.
    text = text.replace("``", f"`{JOINER}`").replace("``", f"`{JOINER}`")
    longest = max((len(found) for found in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest and "`" in (text[0], text[-1]) else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _linked(written: str, text: str, address: str) -> str:
    if text == address:
        return address
    safe = address
    for sign in " ()<>\\":
        safe = safe.replace(sign, f"%{ord(sign):02X}")
    # A text that is an address itself is not shown as a link to another one.
    return f"{written} ({safe})" if "://" in text else f"[{written}]({safe})"
