"""
Generate conversations with the real nanobot, for ``tests/foreign/samples/nanobot_runs``.

``python -m tests.foreign.generate_nanobot_runs PYTHON HOME [COUNT]``, where PYTHON has
``nanobot-ai``: conversations of one to eight turns with tool calls, ``/compact``, forks, turns that
were stopped, and processes that were killed in the middle of an answer and gone on with.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from clew.testing.provider.server import FakeProvider
from tests.foreign.driven import CALLS, HANGS, drive, obey

KINDS = ("plain", "tools", "compacted", "forked", "aborted", "killed", "commands", "long")
KEYS = (
    "telegram:{}", "telegram:-100{}:topic:7", "discord:{}", "slack:C{}:1700.5", "cli:direct{}",
    "websocket:{}",
)  # fmt: skip


def make_settings(url: str) -> dict[str, Any]:
    """Return the configuration of nanobot."""
    defaults = {"model": "fake-model", "provider": "custom", "timezone": "Europe/Berlin"}
    return {
        "agents": {"defaults": {**defaults, "contextWindowTokens": 128_000}},
        "providers": {"custom": {"apiKey": "of-no-use", "apiBase": f"{url}/v1"}},
    }


def make_steps(kind: str, key: str, number: int) -> list[list[str]]:
    """Return the steps of a conversation."""
    calls = CALLS.format(tool="exec", number=number)
    hangs = HANGS.format(tool="exec", number=number)

    def say(text: str) -> list[str]:
        return ["say", key, text]

    steps = [say(f"Question {number}: what grows here? {'' if kind == 'plain' else calls}")]
    more = [say(f"More of {number}, {turn}.") for turn in range(8)]
    match kind:
        case "compacted":
            steps += [*more[:5], say("/compact"), say(f"After {number}. {calls}")]
            if number % 3 == 0:
                steps += [*more[5:], say("/compact"), say(f"Again after {number}.")]
        case "forked":
            fork = f"websocket:fork{number}"
            steps += [more[0], ["fork", key, fork], ["say", fork, f"In the fork of {number}."]]
        case "aborted":
            steps += [["abort", key, f"Stopped {number}. {hangs}"], more[0]]
        case "killed":
            steps += [say(f"Killed {number}. {hangs}")]
        case "commands":
            steps += [say("/status"), more[0], say("/help")]
        case "long":
            steps += [say(f"Step {turn} of {number}. {calls}") for turn in range(6)]
        case _:
            steps += more[: number % 3]
    return steps


def main(python: str, home: Path, count: int) -> None:
    """Hold the conversations; those that are not killed in one process."""
    with FakeProvider(obey, strict=False, templates=False) as provider:
        folder = home / ".nanobot"
        folder.mkdir(parents=True, exist_ok=True)
        settings = json.dumps(make_settings(provider.url))
        (folder / "config.json").write_text(settings, encoding="utf-8")
        environment = os.environ | {"HOME": str(home)}
        calm: list[list[str]] = []
        for number in range(count):
            kind, key = KINDS[number % len(KINDS)], KEYS[number % len(KEYS)].format(1000 + number)
            steps = make_steps(kind, key, number)
            if kind != "killed":
                calm += steps
                continue
            drive(python, "drive_nanobot.py", steps, environment, kill_in_last=True)
            if number % 16 == 5:
                # The others stay as the crash left them.
                again = [["say", key, f"Go on with {number}."]]
                drive(python, "drive_nanobot.py", again, environment)
        drive(python, "drive_nanobot.py", calm, environment)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    main(words[0], Path(words[1]), int(words[2]) if len(words) > 2 else 8)
