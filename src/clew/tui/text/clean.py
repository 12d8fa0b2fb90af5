"""Text from models and other people must not steer the terminal."""

from __future__ import annotations

import re
from typing import Final

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str) -> str:
    """The text without control characters, with blanks instead of tabs."""
    return _CONTROLS.sub("", text.expandtabs(4))
