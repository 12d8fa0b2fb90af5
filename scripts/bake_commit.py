"""
Build hook: write the commit of the checkout into wheel and sdist, for ``clew --version``.

A wheel that is built from the sdist takes what the sdist has.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: Where each target keeps it.
_PLACES: Final = {"wheel": "clew/commit.txt", "sdist": "src/clew/commit.txt"}


class BakeCommit(BuildHookInterface):  # pyright: ignore[reportMissingTypeArgument]
    """Adds a file with the commit, unless the source has one or nobody knows the commit."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file to what is built; an editable installation asks git each time."""
        root = Path(self.root)
        if version == "editable" or (root / _PLACES["sdist"]).exists():
            return
        if (commit := find_commit(root)) is None:
            return
        file = Path(self.directory) / ".commit.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{commit}\n", encoding="ascii")
        build_data["force_include"][str(file)] = _PLACES[self.target_name]

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was only needed to build."""
        (Path(self.directory) / ".commit.txt").unlink(missing_ok=True)


def find_commit(root: Path) -> str | None:
    """Return ``CLEW_COMMIT``, else the commit of the checkout; ``None`` outside of one."""
    if given := os.environ.get("CLEW_COMMIT"):
        return given
    if not (root / ".git").exists():
        return None
    argv = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
