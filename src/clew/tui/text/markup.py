"""Markdown for narrow terminals: left-aligned headings, code without a frame."""

from __future__ import annotations

from functools import cache
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


class _CodeBlock(CodeBlock):
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


class NarrowMarkdown(Markdown):
    """Rich Markdown with our own elements; HTML is shown as text."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _CodeBlock,
        "code_block": _CodeBlock,
    }

    def __init__(self, markup: str, *, code_theme: str) -> None:
        # Rich makes a parser for each text, which takes longer than to render most of them.
        vars(self).update(vars(_empty_markdown(code_theme)))
        self.markup, self.parsed = markup, _create_parser().parse(markup)


@cache
def _create_parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])


@cache
def _empty_markdown(code_theme: str) -> Markdown:
    return Markdown("", code_theme=code_theme)
