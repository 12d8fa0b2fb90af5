"""
Simulate gateways over one store until TURNS turns were run, on all cores; then its mutations.

``TURNS`` (20,000), ``WORKERS`` and ``MUTATIONS`` (``none``, or names) come from the environment.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.mutations.__main__ import ROOT, copy_into, take_out
from tests.simulation.mutations import MUTATIONS
from tests.soak import Table

if TYPE_CHECKING:
    from tests.mutations.mutation import Mutation

TURNS = int(os.environ.get("TURNS", "20000"))
WORKERS = int(os.environ.get("WORKERS", str(os.cpu_count() or 1)))
#: Turns within which the absence of a safeguard has to be found.
SOON = 10_000
_CHOSEN = os.environ.get("MUTATIONS", "")
#: Seeds of a worker; no two workers share one.
_APART = 1_000_000


def run() -> tuple[Table, ...]:
    return (*([] if TURNS == 0 else [_simulate()]), *([] if _CHOSEN == "none" else [_mutate()]))


def _start(folder: Path, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.simulation", *args],
        cwd=folder,
        env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(folder / "src")},
        stdout=subprocess.PIPE,
        text=True,
    )


def _told(process: subprocess.Popen[str]) -> tuple[dict[str, Any], list[str]]:
    output = (process.communicate()[0] or "").splitlines()
    return json.loads(output[-1]), output[:-1]


def _simulate() -> Table:
    begun = time.monotonic()
    workers = [
        _start(ROOT, "--seed", str(1 + n * _APART), "--turns", str(TURNS // WORKERS), "--shrink")
        for n in range(WORKERS)
    ]
    total, faults = Counter[str](), Counter[str]()
    for worker in workers:
        told, wrong = _told(worker)
        faults.update(told.pop("faults"))
        total.update({name: told[name] for name in ("seeds", "turns", "steps", "checks", "wrong")})
        total["virtual"] += told["virtual"]
        for line in wrong:
            print(line, flush=True)
    seconds = time.monotonic() - begun
    rows: list[tuple[object, ...]] = [
        ("turns", total["turns"]),
        ("seeds, each with a store of its own", total["seeds"]),
        ("steps of the scheduler", total["steps"]),
        ("checks of every invariant in the middle", total["checks"]),
        ("faults", faults.total()),
        *((f"… {kind}", count) for kind, count in faults.most_common()),
        (f"turns a second, {WORKERS} processes", f"{total['turns'] / seconds:.1f}"),
        ("seconds per thousand turns", f"{1000 * seconds / total['turns']:.1f}"),
        ("seeds with a violation", total["wrong"]),
    ]
    return Table(
        title="Simulation", columns=("what", "count"), rows=tuple(rows),
        passed=not total["wrong"],
    )  # fmt: skip


def _mutate() -> Table:
    names = _CHOSEN.replace(",", " ").split()
    chosen = [one for one in MUTATIONS if not names or one.name in names]
    rows: list[tuple[object, ...]] = []
    with tempfile.TemporaryDirectory(prefix="clew-simulation-") as name:
        copy_into(Path(name))
        for mutation in chosen:
            rows.append(_find(Path(name), mutation))
            print(rows[-1], flush=True)
    return Table(
        title=f"What the simulation finds within {SOON:,} turns",
        columns=("taken out", "what it does", "found after turns", "as"),
        rows=tuple(rows),
        passed=all(row[2] != "NOT FOUND" for row in rows),
    )


def _find(folder: Path, mutation: Mutation) -> tuple[object, ...]:
    before = take_out(folder, mutation)
    try:
        process = _start(folder, "--turns", str(SOON), "--stop", "--every", "5")
        told, wrong = _told(process)
    finally:
        (folder / mutation.file).write_text(before, encoding="utf-8")
    found = told["turns"] if told["wrong"] else "NOT FOUND"
    first = next((line for line in wrong if line.startswith("seed ")), "")
    return mutation.name, mutation.mechanism, found, _shorten(first)


def _shorten(sentence: str) -> str:
    sentence = re.sub(r"^seed \d+: ", "", sentence)
    return sentence[:90].replace("|", "/")
