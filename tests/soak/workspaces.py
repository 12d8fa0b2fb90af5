"""The conformance suite of the model library's workspaces, at each level of the sandbox."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from tests.integration.test_workspace_conformance import LEVELS
from tests.soak import Table

_TESTS = "tests/integration/test_workspace_conformance.py"


def run() -> Table:
    rows = [(level, *_count(level)) for level in LEVELS]
    return Table(
        title="Rules of the conformance suite of pydantic_ai.workspaces",
        columns=("level", "hold", "do not apply", "broken"),
        rows=tuple(rows),
        passed=all(held > 0 and broken == 0 for _, held, _, broken in rows),
    )


def _count(level: str) -> tuple[int, int, int]:
    """Return how many rules hold, were skipped, and are broken at a level."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "--timeout=300", _TESTS],
        env={**os.environ, "CLEW_WORKSPACE_LEVEL": level},
        capture_output=True,
        text=True,
        check=False,
    )
    words = ("passed", "skipped", "(?:failed|errors?)")
    found = [re.findall(rf"(\d+) {word}", done.stdout) for word in words]
    held, skipped, broken = (sum(map(int, each)) for each in found)
    return held, skipped, max(broken, int(done.returncode != 0))
