"""Levels of the sandbox: how far commands are kept apart."""

from __future__ import annotations

from typing import Final, Literal

Level = Literal["read", "work", "net", "box", "host"]
LEVELS: Final[tuple[Level, ...]] = ("read", "work", "net", "box", "host")
