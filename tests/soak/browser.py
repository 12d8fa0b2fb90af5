"""Every test of the dashboard in a browser, on each database."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter

from tests.soak import Table
from tests.soak._stores import DATABASES

_COUNT = re.compile(r"(\d+) (passed|failed|error)")
_TESTS = ("-m", "browser", "tests/acceptance")


def run() -> Table:
    found: dict[str, Counter[str]] = {}
    for database in DATABASES:
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *_TESTS]
        env = {**os.environ, "CLEW_BROWSER_DATABASE": database}
        done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
        found[database] = Counter({word: int(n) for n, word in _COUNT.findall(done.stdout)})
        if done.returncode:
            print(done.stdout[-5000:], flush=True)
    return Table(
        title="the tests of the dashboard in a browser",
        columns=("", *DATABASES),
        rows=(
            ("passed", *(found[one]["passed"] for one in DATABASES)),
            ("failed", *(found[one]["failed"] + found[one]["error"] for one in DATABASES)),
        ),
        passed=all(one["passed"] and not one["failed"] + one["error"] for one in found.values()),
    )
