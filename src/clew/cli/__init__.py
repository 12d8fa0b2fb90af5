"""Command line interface: one module per command group, imported when it is used."""

from __future__ import annotations

from clew.cli import sigint
from clew.cli.entry_point import main

__all__ = ["main"]

sigint.restore_sigint()
