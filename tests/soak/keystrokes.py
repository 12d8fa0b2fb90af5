"""
Random keys and pastes at a real terminal, before a server that is slow, dies and comes back.

``KEYSTROKES`` says how many (1,000,000), ``SEED`` where to begin.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from tests.soak import Table
from tests.tui.keystrokes import play

#: Keys before one home; then a new one begins, with the next seed.
_EACH = 10_000


def run() -> Table:
    wanted, seed = int(os.environ.get("KEYSTROKES", "1000000")), int(os.environ.get("SEED", "1"))
    rows: list[tuple[object, ...]] = []
    pressed = wrong = 0
    while pressed < wanted:
        with tempfile.TemporaryDirectory() as home:
            keys = min(_EACH, wanted - pressed)
            played = asyncio.run(play(Path(home), keys=keys, seed=seed))
        pressed, wrong = pressed + played.keys, wrong + played.wrong
        rows.append(
            (
                seed,
                played.keys,
                played.pastes,
                played.losses,
                played.quiet_points,
                sum(played.sent.values()),
                sum(played.allowed.values()),
                played.wrong,
            )
        )
        print(*rows[-1], flush=True)
        seed += 1
    return Table(
        title=f"{pressed:,} random keys at the terminal",
        columns=(
            "seed",
            "keys",
            "pastes",
            "server lost",
            "screens compared",
            "messages sent",
            "calls allowed on purpose",
            "lost, doubled, changed, allowed or deleted unmeant",
        ),
        rows=tuple(rows),
        passed=wrong == 0,
    )
