"""Text colours, derived from the theme."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping


class Palette(Record):
    """Colour names; each use also has a sign or weight, so that no colour is required."""

    accent: str = "cyan"
    quiet: str = "bright_black"
    good: str = "green"
    bad: str = "red"
    code: str = "yellow"
    #: Lines that a diff adds and removes.
    added: str = "green"
    removed: str = "red"
    #: Pygments style of code.
    code_theme: str = "ansi_dark"

    @classmethod
    def from_theme(cls, variables: Mapping[str, str], *, dark: bool) -> Palette:
        """Return the colours of a theme's variables."""
        usual = cls()
        return cls(
            accent=_hex_colour(variables.get("primary"), usual.accent),
            quiet="#8a8a8a" if dark else "#6c6c6c",
            good=_hex_colour(variables.get("success"), usual.good),
            bad=_hex_colour(variables.get("error"), usual.bad),
            added="#a6e3a1 on #1d3524" if dark else "#11551f on #d7f5dc",
            removed="#f2a6b0 on #40222a" if dark else "#7d1220 on #fbdde0",
            code=_hex_colour(variables.get("accent"), usual.code),
            code_theme="monokai" if dark else "default",
        )

    def diff_style(self, sign: str) -> str:
        """Return the style of a diff line by its first character."""
        return {"+": self.added, "-": self.removed, "@": self.accent}.get(sign, self.quiet)

    def markdown_styles(self) -> dict[str, str]:
        """Return the styles of Markdown elements."""
        return {
            "markdown.code": self.code,
            "markdown.code_block": self.code,
            "markdown.h1": f"bold {self.accent}",
            "markdown.h2": f"bold {self.accent}",
            "markdown.h3": "bold",
            "markdown.h4": "bold",
            "markdown.item.bullet": self.accent,
            "markdown.item.number": self.accent,
            "markdown.hr": self.quiet,
            "markdown.block_quote": self.quiet,
            "markdown.link": f"underline {self.accent}",
            "markdown.link_url": self.quiet,
        }


def _hex_colour(colour: str | None, usual: str) -> str:
    """Return a colour that Rich supports, else the default."""
    return colour if colour and colour.startswith("#") and len(colour) == 7 else usual
