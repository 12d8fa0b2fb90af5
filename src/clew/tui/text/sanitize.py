"""Removal of control characters: foreign text must not control the terminal."""

from __future__ import annotations

import re
from typing import Final

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def strip_controls(text: str) -> str:
    """Return the text without control characters, with spaces instead of tabs."""
    return _CONTROLS.sub("", text.expandtabs(4))
