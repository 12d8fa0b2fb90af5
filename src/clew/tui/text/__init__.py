"""Text as it is drawn: Markdown in pieces, lines of a terminal."""

from __future__ import annotations
