"""The distribution: its name, its version, and the command that installs a part of it."""

from __future__ import annotations

from typing import Final

#: On package indexes; the command and the import are ``clew``, a name that is taken there.
NAME: Final = "clew-gateway"
#: As in pyproject.toml (a test compares them): asking the installed package costs 15 ms.
VERSION: Final = "0.1.0"


def requirement(extra: str) -> str:
    """Return the requirement that brings an optional part."""
    return f"{NAME}[{extra}]"


def install_command(extra: str) -> str:
    """Return the command that installs an optional part."""
    return f"pip install '{requirement(extra)}'"
