"""Name, version and installation commands of the distribution."""

from __future__ import annotations

from typing import Final

#: On package indexes, where ``clew``, the name of command and import, is taken.
DISTRIBUTION_NAME: Final = "clew-gateway"
#: As in pyproject.toml (a test compares them): reading the package metadata takes 15 ms.
VERSION: Final = "0.1.0"


def format_requirement(extra: str) -> str:
    """Return the requirement for an optional part."""
    return f"{DISTRIBUTION_NAME}[{extra}]"


def format_install_command(extra: str) -> str:
    """Return the command that installs an optional part."""
    return f"pip install '{format_requirement(extra)}'"
