"""
A gateway under load while the command line, fsck, backup and a second gateway open and close its
store, a hundred times; between them as long without, so that what else the machine does counts on
both sides.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.acceptance.program import Clew
from tests.openers import Talk, open_and_close
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from collections.abc import Generator

CYCLES = int(os.environ.get("CLEW_SOAK_ROUNDS", "100"))
#: A third of what one gateway carries on two cores: of a full machine all else takes a share.
PEOPLE, PAUSE, MOST = 4, 0.15, 40
#: Factor by which a turn may take longer, at the 95th percentile.
RATIO = 1.5
ROOT = Path(__file__).parents[2]


def run() -> Table:
    rows: list[tuple[object, ...]] = []
    passed = True
    with server() as server_url, provider() as model:
        for database in DATABASES:
            with fresh(database, server_url) as (url, home):
                row, held = _openers(Clew(home / "home", _settings(url, model)), home)
            rows.append((database, *row))
            passed &= held
            print(rows[-1], flush=True)
    return Table(
        title=f"{CYCLES} times a reader, fsck, a backup and a second gateway; {PEOPLE} people "
        f"talk, each {PAUSE * 1000:.0f} ms after an answer",
        columns=(
            "database", "answers", "wrong", "errors logged", "fsck", "p95 quiet", "p95 with others",
            "ratio",
        ),
        rows=tuple(rows),
        passed=passed,
    )  # fmt: skip


def _settings(url: str, model: str) -> dict[str, str]:
    return {
        "CLEW_STORE__URL": url,
        "CLEW_MODEL__NAME": "openai-chat:fake-model",
        "CLEW_MODEL__BASE_URL": model,
    }


@contextmanager
def provider() -> Generator[str]:
    """A model that repeats what it hears, as a process of its own; its base URL."""
    command = [sys.executable, "-m", "clew.testing.provider", "--script", "echo"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"{process.stdout.readline().strip()}/v1"
    finally:
        process.terminate()
        process.communicate()


def _openers(clew: Clew, folder: Path) -> tuple[tuple[object, ...], bool]:
    quiet: list[float] = []
    busy: list[float] = []
    log = folder / "serve.log"
    with log.open("w") as errors, clew.serving(errors=errors) as (url, _):
        with Talk(url, people=PEOPLE, pause=PAUSE, most=MOST) as talk:
            time.sleep(2)
            talk.take_times()
            for cycle in range(CYCLES):
                print(f"cycle {cycle + 1} of {CYCLES}", file=sys.stderr, flush=True)
                began = time.monotonic()
                open_and_close(clew, folder / "backup")
                busy += talk.take_times()
                time.sleep(time.monotonic() - began)
                quiet += talk.take_times()
        wrong, answers = talk.wrong, sum(talk.said().values())
    logged = [line for line in log.read_text().splitlines() if _is_error(line)]
    clean = clew.data("fsck")["clean"]
    for sentence in [*wrong, *logged]:
        print(sentence, flush=True)
    ratio = _p95(busy) / _p95(quiet)
    figures = (f"{_p95(quiet) * 1000:.0f} ms", f"{_p95(busy) * 1000:.0f} ms", f"{ratio:.2f}")
    row = (answers, len(wrong), len(logged), "clean" if clean else "NOT CLEAN", *figures)
    return row, not wrong and not logged and clean and ratio <= RATIO


def _is_error(line: str) -> bool:
    return line.startswith("{") and json.loads(line)["level"] in ("error", "critical")


def _p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]
