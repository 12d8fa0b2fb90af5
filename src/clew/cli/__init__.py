"""One module per command group; each is imported when its command is used."""

from __future__ import annotations

from clew.cli import early
from clew.cli.entry import main

__all__ = ["main"]

early.loaded()
