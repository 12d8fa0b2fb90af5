"""
Parser from Markdown to text blocks.

No text is lost: what no block can represent stays as text. Raw HTML and reference
definitions are text; a table keeps its source lines.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

from clew.core.text import is_blank
from clew.gateway.text.addresses import spell_address
from clew.gateway.text.languages import is_language
from clew.gateway.text.rich_text import (
    BlockFrame,
    CodeFrame,
    QuoteFrame,
    TextBlock,
    TextRun,
    TextStyle,
    merge_runs,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.token import Token

_STYLES = {"strong": TextStyle.BOLD, "em": TextStyle.ITALIC, "s": TextStyle.STRIKE}
_RULE_TEXT = "———"
#: Maximum nesting of blocks; the parser drops deeper ones.
_MAX_NESTING = 50
#: After the language: attributes for the renderer, such as ``title="a.py"``.
_ATTRIBUTES = re.compile(r"\{.*\}|\w+=.*")


@cache
def _create_parser() -> MarkdownIt:
    # Without references: an unused definition would vanish.
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _MAX_NESTING})
    return parser.enable(["table", "strikethrough"]).disable("reference")


def parse_markdown(text: str) -> list[TextBlock]:
    """Return the blocks of a Markdown text; the text as it is if none would be visible."""
    tokens = _create_parser().parse(text)
    if any(token.level >= _MAX_NESTING - 1 for token in tokens):
        return parse_plain_text(text)
    pieces = _MarkdownReader(text, tokens).blocks
    if all(piece.is_blank for piece in pieces):
        return parse_plain_text(text)
    return pieces


def parse_plain_text(text: str) -> list[TextBlock]:
    """Return the paragraphs of a text without markup as blocks."""
    return [
        TextBlock((TextRun(paragraph),))
        for paragraph in text.split("\n\n")
        if not is_blank(paragraph)
    ]


class _ListState:
    """A list that is being read."""

    def __init__(self, start: int | None) -> None:
        self.next = start

    def next_marker(self) -> str:
        if self.next is None:
            return "• "
        self.next += 1
        return f"{self.next - 1}. "


class _MarkdownReader:
    """Converts Markdown tokens to text blocks."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self._lines = text.split("\n")
        self.blocks: list[TextBlock] = []
        self._lists: list[_ListState] = []
        self._quotes = 0
        self._group = 0
        #: The item marker that the next block begins with.
        self._marker = ""
        self._heading = False
        #: The list or quote of the next block has a block already.
        self._inside = False
        place = 0
        while place < len(tokens):
            place = self._read_token(tokens, place)

    def _read_token(self, tokens: Sequence[Token], place: int) -> int:
        token = tokens[place]
        if token.type == "table_open":
            return self._add_table(tokens, place)
        name = token.type.removesuffix("_open").removesuffix("_close")
        if name in ("bullet_list", "ordered_list", "list_item", "blockquote", "heading"):
            self._change_nesting(name, token)
        elif token.type == "inline":
            self._add_runs(self._read_inline(token.children or []))
        elif token.type in ("fence", "code_block"):
            self._add_code(*_parse_fence(token.info.strip(), token.content))
        elif token.type == "hr":
            self._add_runs([TextRun(_RULE_TEXT)])
        return place + 1

    def _change_nesting(self, name: str, token: Token) -> None:
        opens = token.nesting > 0
        if name == "heading":
            self._heading = opens
            return
        self._flush_marker()
        if name == "list_item":
            if opens:
                self._marker = "  " * (len(self._lists) - 1) + self._lists[-1].next_marker()
            return
        if opens:
            self._enter_group()
        if name == "blockquote":
            self._quotes += token.nesting
        elif opens:
            start = int(token.attrs.get("start", 1)) if name == "ordered_list" else None
            self._lists.append(_ListState(start))
        else:
            self._lists.pop()
        if not opens:
            self._inside = bool(self._lists or self._quotes)

    def _enter_group(self) -> None:
        if not (self._lists or self._quotes):
            self._group += 1
            self._inside = False

    def _flush_marker(self) -> None:
        """Emit a pending item marker: an item may be empty or begin with another list."""
        if self._marker:
            self._add_runs([])

    def _add_runs(self, runs: Sequence[TextRun]) -> None:
        if self._heading:
            runs = [TextRun(run.text, run.style | TextStyle.BOLD, run.link) for run in runs]
        indent = self._marker or "  " * len(self._lists)
        if not self._marker and not runs:
            return
        # Further lines of the text are indented to its beginning.
        below = "\n" + " " * len(indent)
        runs = [TextRun(run.text.replace("\n", below), run.style, run.link) for run in runs]
        self._marker = ""
        frame: BlockFrame | None = QuoteFrame() if self._quotes else None
        self._append_block(merge_runs([TextRun(indent), *runs]), frame, tight=bool(self._lists))

    def _append_block(
        self, runs: tuple[TextRun, ...], frame: BlockFrame | None, *, tight: bool
    ) -> None:
        glue = "\n" if self._inside and tight else "\n\n"
        group = self._group
        if not (self._lists or self._quotes):
            self._group += 1
            group = self._group
        self.blocks.append(TextBlock(runs, glue, frame, group))
        self._inside = bool(self._lists or self._quotes)

    def _add_code(self, content: str, language: str) -> None:
        self._flush_marker()
        lines = content.removesuffix("\n").split("\n")
        glue = "\n" if self._inside and self._lists else "\n\n"
        if not (self._lists or self._quotes):
            self._group += 1
        for line in lines:
            self.blocks.append(TextBlock((TextRun(line),), glue, CodeFrame(language), self._group))
            glue = "\n"
        self._inside = bool(self._lists or self._quotes)

    def _add_table(self, tokens: Sequence[Token], place: int) -> int:
        found = tokens[place].map
        assert found is not None
        lines = [line.strip() for line in self._lines[found[0] : found[1]]]
        self._add_code("\n".join(lines), "")
        depth = 0
        while True:
            depth += tokens[place].nesting
            place += 1
            if depth == 0:
                return place

    def _read_inline(self, tokens: Sequence[Token]) -> list[TextRun]:
        runs: list[TextRun] = []
        style, link, title, alone = TextStyle.PLAIN, None, "", False
        for token in tokens:
            match token.type:
                case "text":
                    shown = token.content
                    if link and alone and (shown := spell_address(shown, link)) != token.content:
                        link = shown
                    runs.append(TextRun(shown, style, link))
                case "code_inline":
                    runs.append(TextRun(token.content, style | TextStyle.CODE, link))
                case "softbreak" | "hardbreak":
                    runs.append(TextRun("\n", style, link))
                case "image":
                    source = str(token.attrs["src"])
                    runs.append(TextRun(token.content or source, style, link or source))
                    runs.append(TextRun(_format_title(token), style, link))
                case "link_open":
                    link, title = str(token.attrs["href"]), _format_title(token)
                    alone = token.markup == "autolink"
                case "link_close":
                    if not any(run.link == link for run in runs[-1:]):
                        runs.append(TextRun(link or "", style, link))
                    link = None
                    runs.append(TextRun(title, style, link))
                case _:
                    name = token.type.removesuffix("_open").removesuffix("_close")
                    style ^= _STYLES.get(name, TextStyle.PLAIN)
        return list(merge_runs(runs))


def _parse_fence(info: str, content: str) -> tuple[str, str]:
    """
    Return the content of a code block and its language.

    The text after the opening fence is a language only if it names one. Otherwise it is
    content, such as all of "```make all" where no line follows.
    """
    language, _, rest = info.partition(" ")
    rest = rest.strip()
    shown_as_such = is_language(language) and (not rest or _ATTRIBUTES.fullmatch(rest))
    if is_blank(content) or not shown_as_such:
        language, rest = "", info
    return f"{rest}\n{content}" if rest else content, language


def _format_title(token: Token) -> str:
    title = token.attrs.get("title")
    return f" ({title})" if title else ""
