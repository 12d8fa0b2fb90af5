"""
Replay the facts of the simulation into the core of ``remit-contract``, and print its verdicts.

Runs in an environment of its own: ``python _remit_judge.py FACTS``. A turn is a thread, its
steps are the tasks, an approval is an interrupt.
"""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import remit


class Judge:
    """Asks the core about each fact, and keeps what it refuses or decides otherwise."""

    def __init__(self) -> None:
        self.core = remit.Core()
        self.asked: Counter[str] = Counter()
        self.refused: list[str] = []
        self.answers: dict[str, str] = {}

    def hear(self, fact: dict) -> None:
        kind, thread = fact["kind"], fact["thread"]
        try:
            getattr(self, f"hear_{kind}")(thread, fact)
        except remit.RemitError as error:
            self.refused.append(f"{kind} {thread}: {type(error).__name__}: {error}")

    def hear_effect(self, thread: str, fact: dict) -> None:
        self.asked["EO"] += 1
        self.core.begin_effect(thread, fact["task"], fact["effect"])

    def hear_commit(self, thread: str, fact: dict) -> None:
        self.asked["PC"] += 1
        self.core.commit_checkpoint(thread, fact["task"], b"{}")

    def hear_recover(self, thread: str, fact: dict) -> None:
        self.asked["RD"] += 1
        decided = self.core.recover(thread)
        if not decided == self.core.recover(thread) == fact["task"]:
            self.refused.append(f"recover {thread}: {fact['task']}, decided is {decided}")

    def hear_request(self, thread: str, fact: dict) -> None:
        self.asked["CV"] += 1
        self.core.validity_gate(thread, fact["valid"], fact["reason"])

    def hear_answer(self, thread: str, fact: dict) -> None:
        self.asked["CO"] += 1
        place, value = fact["checkpoint"], fact["value"]
        first = place not in self.answers
        decided = self.core.resolve_resume(thread, place, supplied=value)["decision"]
        if first and not fact["refused"]:
            self.answers[place] = value
        served = decided == "serve_supplied"
        if served != (first and not fact["refused"]):
            self.refused.append(f"answer {place}: {fact}, decided is {decided}")

    def hear_complete(self, thread: str, fact: dict) -> None:
        self.core.complete(thread)


def main(path: str) -> None:
    judge = Judge()
    with Path(path).open(encoding="utf-8") as facts:
        for line in facts:
            judge.hear(json.loads(line))
    print(json.dumps({"asked": judge.asked, "refused": judge.refused}))


if __name__ == "__main__":
    main(sys.argv[1])
