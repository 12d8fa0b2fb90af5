"""Command line interface: one module per command group, imported when it is used."""

from __future__ import annotations

from clew.cli import early
from clew.cli.entry import main

__all__ = ["main"]

early.restore_sigint()
