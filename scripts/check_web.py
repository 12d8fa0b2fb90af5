"""``python -m scripts.check_web``: check the types of the dashboard's modules."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.javascript import find_type_errors

PROJECT = Path(__file__).parents[1] / "src" / "clew" / "web" / "jsconfig.json"


def main() -> None:
    """Print what the compiler says, and fail if it says anything."""
    if told := find_type_errors(PROJECT):
        sys.exit(told)


if __name__ == "__main__":
    main()
