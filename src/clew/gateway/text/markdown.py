"""
Reading Markdown as pieces.

Nothing that is written is lost: what no piece can show stays as text. Raw HTML is text, reference
definitions are text, a table keeps the lines in which it is written.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

from clew.core.text import is_blank
from clew.gateway.text.languages import is_language
from clew.gateway.text.pieces import Code, Frame, Piece, Quote, Run, Style, merged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.token import Token

_STYLES = {"strong": Style.BOLD, "em": Style.ITALIC, "s": Style.STRIKE}
_RULE = "———"
#: Blocks within blocks; where there are more, the parser leaves the rest out.
_MOST_NESTED = 50
#: Behind the language: settings of whoever shows the code, such as ``title="a.py"``.
_ATTRIBUTES = re.compile(r"\{.*\}|\w+=.*")


@cache
def _parser() -> MarkdownIt:
    # Without references: a definition that nobody refers to would vanish.
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _MOST_NESTED})
    return parser.enable(["table", "strikethrough"]).disable("reference")


def read(text: str) -> list[Piece]:
    """The pieces of a text in Markdown, in order; where no text is left of it, as it is written."""
    tokens = _parser().parse(text)
    if any(token.level >= _MOST_NESTED - 1 for token in tokens):
        return read_plain(text)
    pieces = _Reader(text, tokens).pieces
    if all(piece.blank for piece in pieces):
        return read_plain(text)
    return pieces


def read_plain(text: str) -> list[Piece]:
    """The pieces of a text without markup: its paragraphs."""
    return [Piece((Run(paragraph),)) for paragraph in text.split("\n\n") if not is_blank(paragraph)]


class _List:
    """A list that is being read."""

    def __init__(self, start: int | None) -> None:
        self.next = start

    def marker(self) -> str:
        if self.next is None:
            return "• "
        self.next += 1
        return f"{self.next - 1}. "


class _Reader:
    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self._lines = text.split("\n")
        self.pieces: list[Piece] = []
        self._lists: list[_List] = []
        self._quotes = 0
        self._group = 0
        #: What the next piece begins with: the marker of its item.
        self._marker = ""
        self._heading = False
        #: The list or quote that the next piece belongs to was entered already.
        self._inside = False
        place = 0
        while place < len(tokens):
            place = self._read(tokens, place)

    def _read(self, tokens: Sequence[Token], place: int) -> int:
        token = tokens[place]
        if token.type == "table_open":
            return self._table(tokens, place)
        name = token.type.removesuffix("_open").removesuffix("_close")
        if name in ("bullet_list", "ordered_list", "list_item", "blockquote", "heading"):
            self._nest(name, token)
        elif token.type == "inline":
            self._add(self._inline(token.children or []))
        elif token.type in ("fence", "code_block"):
            self._code(*_fenced(token.info.strip(), token.content))
        elif token.type == "hr":
            self._add([Run(_RULE)])
        return place + 1

    def _nest(self, name: str, token: Token) -> None:
        opens = token.nesting > 0
        if name == "heading":
            self._heading = opens
            return
        self._flush()
        if name == "list_item":
            if opens:
                self._marker = "  " * (len(self._lists) - 1) + self._lists[-1].marker()
            return
        if opens:
            self._enter()
        if name == "blockquote":
            self._quotes += token.nesting
        elif opens:
            start = int(token.attrs.get("start", 1)) if name == "ordered_list" else None
            self._lists.append(_List(start))
        else:
            self._lists.pop()
        if not opens:
            self._inside = bool(self._lists or self._quotes)

    def _enter(self) -> None:
        if not (self._lists or self._quotes):
            self._group += 1
            self._inside = False

    def _flush(self) -> None:
        """An item that begins with another list, or with nothing, still shows its marker."""
        if self._marker:
            self._add([])

    def _add(self, runs: Sequence[Run]) -> None:
        if self._heading:
            runs = [Run(run.text, run.style | Style.BOLD, run.link) for run in runs]
        indent = self._marker or "  " * len(self._lists)
        if not self._marker and not runs:
            return
        # Where text goes on in further lines, they stand under it.
        below = "\n" + " " * len(indent)
        runs = [Run(run.text.replace("\n", below), run.style, run.link) for run in runs]
        self._marker = ""
        frame: Frame | None = Quote() if self._quotes else None
        self._put(merged([Run(indent), *runs]), frame, tight=bool(self._lists))

    def _put(self, runs: tuple[Run, ...], frame: Frame | None, *, tight: bool) -> None:
        glue = "\n" if self._inside and tight else "\n\n"
        group = self._group
        if not (self._lists or self._quotes):
            self._group += 1
            group = self._group
        self.pieces.append(Piece(runs, glue, frame, group))
        self._inside = bool(self._lists or self._quotes)

    def _code(self, content: str, language: str) -> None:
        self._flush()
        lines = content.removesuffix("\n").split("\n")
        glue = "\n" if self._inside and self._lists else "\n\n"
        if not (self._lists or self._quotes):
            self._group += 1
        for line in lines:
            self.pieces.append(Piece((Run(line),), glue, Code(language), self._group))
            glue = "\n"
        self._inside = bool(self._lists or self._quotes)

    def _table(self, tokens: Sequence[Token], place: int) -> int:
        found = tokens[place].map
        assert found is not None
        lines = [line.strip() for line in self._lines[found[0] : found[1]]]
        self._code("\n".join(lines), "")
        depth = 0
        while True:
            depth += tokens[place].nesting
            place += 1
            if depth == 0:
                return place

    def _inline(self, tokens: Sequence[Token]) -> list[Run]:
        runs: list[Run] = []
        style, link, title = Style.PLAIN, None, ""
        for token in tokens:
            match token.type:
                case "text":
                    runs.append(Run(token.content, style, link))
                case "code_inline":
                    runs.append(Run(token.content, style | Style.CODE, link))
                case "softbreak" | "hardbreak":
                    runs.append(Run("\n", style, link))
                case "image":
                    source = str(token.attrs["src"])
                    runs.append(Run(token.content or source, style, link or source))
                    runs.append(Run(_titled(token), style, link))
                case "link_open":
                    link, title = str(token.attrs["href"]), _titled(token)
                case "link_close":
                    if not any(run.link == link for run in runs[-1:]):
                        runs.append(Run(link or "", style, link))
                    link = None
                    runs.append(Run(title, style, link))
                case _:
                    name = token.type.removesuffix("_open").removesuffix("_close")
                    style ^= _STYLES.get(name, Style.PLAIN)
        return list(merged(runs))


def _fenced(info: str, content: str) -> tuple[str, str]:
    """
    Return what a block of code holds, and its language.

    What stands behind the marks that open it is a language only where it names one: else it is
    text, such as the whole of "```make all" where no line follows.
    """
    language, _, rest = info.partition(" ")
    rest = rest.strip()
    shown_as_such = is_language(language) and (not rest or _ATTRIBUTES.fullmatch(rest))
    if is_blank(content) or not shown_as_such:
        language, rest = "", info
    return f"{rest}\n{content}" if rest else content, language


def _titled(token: Token) -> str:
    title = token.attrs.get("title")
    return f" ({title})" if title else ""
