"""The demonstration without a token: ``make demo-channels``."""

from __future__ import annotations

import subprocess
import sys


def test_the_demonstration_of_channels_shows_what_it_promises() -> None:
    command = [sys.executable, "-m", "clew.testing.demo"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=55, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    told = done.stdout
    steps = (
        "clew  You do not have access to this assistant yet.",
        "Ada now has access to telegram",
        "clew  You have access now",
        "found his way out of the labyrinth by it.",
        "[Allow]",
        "clew  Done: the roses are watered.",
        "(the gateway is dead)",
        "left it by air.",
    )
    places = [told.index(step) for step in steps]
    assert places == sorted(places)
    assert told.count("left it by air.") == 1
