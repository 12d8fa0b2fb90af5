"""Markdown for a narrow place: headings at the left, code without a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from markdown_it import MarkdownIt
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.syntax import Syntax

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


class _Heading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Code(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        yield Syntax(
            code,
            self.lexer_name,
            theme=self.theme,
            word_wrap=True,
            padding=(0, 1),
            background_color="default",
        )


class Markup(Markdown):
    """As Rich draws it, with elements of our own; what looks like HTML is text, and shown."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
    }

    def __init__(self, markup: str, *, code_theme: str) -> None:
        super().__init__("", code_theme=code_theme)
        parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
        self.markup, self.parsed = markup, parser.parse(markup)
