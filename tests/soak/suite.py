"""Every test on each database, with those that ``make test`` leaves out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter

from tests.soak import Table

WORKERS = os.environ.get("CLEW_SOAK_WORKERS", "6")
_COUNT = re.compile(r"(\d+) (passed|failed|error|skipped)")


def run() -> Table:
    command = (sys.executable, "-m", "pytest", "-q", "-n", WORKERS, "--dist", "worksteal")
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        print(done.stdout[-20_000:], flush=True)
    found = Counter({word: int(n) for n, word in _COUNT.findall(done.stdout[-2000:])})
    return Table(
        title="every test, on both databases",
        columns=("passed", "failed", "errors", "skipped"),
        rows=((found["passed"], found["failed"], found["error"], found["skipped"]),),
        passed=done.returncode == 0,
    )
