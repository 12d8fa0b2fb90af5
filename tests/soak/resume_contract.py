"""
Have ``remit-contract`` judge what the simulation did: the resume contract of arXiv 2608.03836.

It is installed into an environment of its own, from the index that pip is set to. ``TURNS`` (400)
turns are judged, then the same facts with each told twice, which it has to refuse.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

from tests.soak import Table

TURNS = os.environ.get("TURNS", "400")
VERSION = "0.1.2"
_JUDGE = Path(__file__).with_name("_remit_judge.py")
_PROPERTIES = {
    "PC": "prefix continuation: each stored step is the next one",
    "EO": "effects exactly once: `once` tools over crashes and take-overs",
    "CV": "checkpoint validity: each request pairs calls and results",
    "CO": "consume once: answers to approvals, repeated and late",
    "RD": "recovery determinism: a take-over goes on at the step that follows from the log",
    "FD": "fork determinism: not judged, a branch of Clew copies no open question",
}


def run() -> Table:
    with tempfile.TemporaryDirectory(prefix="clew-remit-") as name:
        folder = Path(name)
        python, facts = _install(folder / "venv"), folder / "facts.jsonl"
        simulated = subprocess.run(
            [sys.executable, "-m", "tests.simulation", "--turns", TURNS, "--facts", str(facts)],
            env={**os.environ, "PYTHONHASHSEED": "0"}, stdout=subprocess.PIPE,
            text=True, check=False,
        )  # fmt: skip
        told = _judge(python, facts)
        doubled = folder / "doubled.jsonl"
        lines = facts.read_text(encoding="utf-8").splitlines()
        doubled.write_text("".join(f"{line}\n{line}\n" for line in lines), encoding="utf-8")
        twice = _judge(python, doubled)
    for sentence in told["refused"]:
        print(sentence, flush=True)
    rows: list[tuple[object, ...]] = [
        (name, what, told["asked"].get(name, 0)) for name, what in _PROPERTIES.items()
    ]
    rows.append(("", "refused, or decided otherwise", len(told["refused"])))
    rows.append(("", "refused where each fact is told twice", len(twice["refused"])))
    return Table(
        title=f"remit-contract {VERSION} on {TURNS} simulated turns or more",
        columns=("property", "what is judged", "facts"),
        rows=tuple(rows),
        passed=not told["refused"] and bool(twice["refused"]) and simulated.returncode == 0,
    )


def _install(folder: Path) -> str:
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", f"remit-contract=={VERSION}"], check=True)
    return python


def _judge(python: str, facts: Path) -> dict[str, Any]:
    done = subprocess.run(
        [python, str(_JUDGE), str(facts)], stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout)
