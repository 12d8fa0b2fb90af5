"""``clew --version``: the version, the commit, and the schemas of the store that it knows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from clew.distribution import VERSION
from clew.errors import ClewError

_PACKAGE: Final = Path(__file__).parents[1]
#: Written into wheel and sdist when they are built.
_BAKED: Final = _PACKAGE / "commit.txt"
_NUMBER: Final = re.compile(r"(\d{4})_\w+(?:\.\w+)?\.sql")


def format_version() -> str:
    """Return the lines of ``--version``."""
    features = "".join(f", {name} {number}" for name, number in find_feature_schemas().items())
    return (
        f"clew {VERSION}\n"
        f"commit {find_commit() or 'unknown'}\n"
        f"store schema {find_newest_migration(_PACKAGE / 'store' / 'migrations')}{features}"
    )


def find_commit() -> str | None:
    """Return the commit of this code: of its checkout, else the one that it was built from."""
    if (commit := _ask_git(_PACKAGE.parents[1])) is not None:
        return commit
    try:
        return _BAKED.read_text(encoding="ascii").strip() or None
    except OSError:
        return None


def _ask_git(root: Path) -> str | None:
    """Return the commit of a checkout, with ``-dirty`` if files differ from it."""
    if not (root / ".git").exists() or not (root / "pyproject.toml").exists():
        return None
    import subprocess  # noqa: PLC0415  (only in a checkout)

    argv = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def find_feature_schemas() -> dict[str, int]:
    """Return the newest migration of each bundled feature that has tables."""
    folders = sorted((_PACKAGE / "features").glob("*/migrations"))
    return {folder.parent.name: find_newest_migration(folder) for folder in folders}


def find_newest_migration(folder: Path) -> int:
    """
    Return the highest number of the migrations in a folder.

    :raises ClewError: if there are none, as in a broken installation
    """
    found = [int(match[1]) for file in folder.iterdir() if (match := _NUMBER.fullmatch(file.name))]
    if not found:
        raise ClewError(f"{folder} has no migrations: install Clew again")
    return max(found)
