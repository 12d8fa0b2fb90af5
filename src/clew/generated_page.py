"""Output of the programs that generate a page of the documentation."""

from __future__ import annotations

import sys
from pathlib import Path


def write_page(text: str) -> None:
    """Write a page to the file given as the program's argument; without one, print it."""
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
