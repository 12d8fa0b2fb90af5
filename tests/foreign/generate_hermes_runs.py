"""
Generate conversations with the real Hermes Agent, for ``tests/foreign/samples/hermes_runs``.

``python -m tests.foreign.generate_hermes_runs PYTHON HOME [COUNT]``, where PYTHON has
``hermes-agent``: conversations of one to eight turns with tool calls, ``/compress``
(in place, and as a new session), ``/undo``, ``/branch``, tasks of subagents, turns that
were interrupted, and processes that were killed in the middle of an answer and gone on with.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path

from clew.testing.provider.server import FakeProvider
from tests.foreign.driven import CALLS, HANGS, drive, obey

SETTINGS = """model:
  default: fake-model
  provider: custom
  base_url: {url}/v1
  context_length: 128000
compression:
  in_place: {in_place}
  protect_first_n: 2
  protect_last_n: 2
approvals:
  destructive_slash_confirm: false
"""
TASK = '<<[[["delegate_task", {"goal": "Count to three."}]], "It counted."]>>'
KINDS = (
    "plain", "tools", "compressed", "rotated", "undone", "branched", "aborted", "delegated",
    "killed", "long",
)  # fmt: skip


def make_steps(kind: str, number: int) -> list[list[str]]:
    """Return the steps of a conversation."""
    calls = CALLS.format(tool="terminal", number=number)
    steps = [["say", f"Question {number}: what grows here? {'' if kind == 'plain' else calls}"]]
    more = [["say", f"More of {number}, {turn}."] for turn in range(8)]
    match kind:
        case "compressed" | "rotated":
            last = ["say", f"After {number}. {calls}"]
            steps += [*more[:6], ["do", "/compress"], last]
            if number % 3 == 0:
                steps += [*more[6:], ["do", "/compress here 1"], ["say", f"Again after {number}."]]
        case "undone":
            steps += [more[0], ["do", "/undo"], ["say", f"Instead of {number}."]]
        case "branched":
            steps += [more[0], ["do", "/branch"], ["say", f"In the branch of {number}."]]
        case "aborted":
            steps += [
                ["abort", f"Aborted {number}. {HANGS.format(tool='terminal', number=number)}"]
            ]
            steps += [more[0]]
        case "delegated":
            steps += [["say", f"Delegate {number}. {TASK}"]]
        case "killed":
            steps += [["say", f"Killed {number}. {HANGS.format(tool='terminal', number=number)}"]]
        case "long":
            steps += [["say", f"Step {turn} of {number}. {calls}"] for turn in range(6)]
        case _:
            steps += more[: number % 3]
    return steps


def main(python: str, home: Path, count: int) -> None:
    """Hold the conversations."""
    with FakeProvider(obey, strict=False, templates=False) as provider:
        home.mkdir(parents=True, exist_ok=True)
        environment = os.environ | {
            "HOME": str(home.parent),
            "HERMES_HOME": str(home),
            "OPENAI_API_KEY": "of-no-use",
            "HERMES_INTERACTIVE": "",
        }
        for number in range(count):
            kind = KINDS[number % len(KINDS)]
            in_place = str(kind != "rotated").lower()
            text = SETTINGS.format(url=provider.url, in_place=in_place)
            (home / "config.yaml").write_text(text, encoding="utf-8")
            killed = kind == "killed"
            steps = make_steps(kind, number)
            drive(python, "drive_hermes.py", steps, environment, kill_in_last=killed)
            if killed:
                again = [["resume", ""], ["say", f"Go on with {number}."]]
                drive(python, "drive_hermes.py", again, environment)


def dump(home: Path) -> None:
    """Write the tables that matter as SQL, without long prompts and folders of this machine."""
    kept = ("schema_version", "sessions", "messages", "gateway_routing")
    with sqlite3.connect(home / "state.db") as source, sqlite3.connect(":memory:") as copy:
        source.backup(copy)
        listed = "SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'table')"
        for kind, name in copy.execute(f"{listed} ORDER BY type DESC").fetchall():
            if name not in kept and not name.startswith("sqlite_"):
                copy.execute(f'DROP {kind} IF EXISTS "{name}"')
        copy.execute("UPDATE sessions SET system_prompt = substr(system_prompt, 1, 300)")
        lines = [line for line in copy.iterdump() if "INDEX" not in line and "fts" not in line]
    text = "\n".join(lines).replace(str(home.parent), "/home/user")
    (home / "state.sql").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    main(words[0], Path(words[1]), int(words[2]) if len(words) > 2 else 10)
    dump(Path(words[1]))
