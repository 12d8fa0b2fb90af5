"""The demonstrations: ``make demo-channels`` and ``make demo-tools``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from clew.testing.demo_tools import NO_SANDBOX
from tests import forking

if TYPE_CHECKING:
    import subprocess


def demonstrate(program: str) -> subprocess.CompletedProcess[str]:
    """Run a demonstration, which itself starts ``clew`` from nothing."""
    return forking.run([], environ=os.environ, within=200, program=program)


def test_the_demonstration_of_channels_shows_what_it_promises() -> None:
    done = demonstrate("clew.testing.demo:main")
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


def test_the_demonstration_of_tools_goes_on_after_a_kill_and_repeats_nothing() -> None:
    done = demonstrate("clew.testing.demo_tools:main")
    if NO_SANDBOX in done.stdout and not os.environ.get("CI"):
        pytest.skip(NO_SANDBOX)
    assert (done.returncode, done.stderr) == (0, "")
    told = done.stdout
    steps = (
        "· read_file",
        "· run_python",
        "? web_fetch",
        "(allowed: web_fetch)",
        "kill -9",
        "(not answered yet: “Report on sales.csv",
        "· write_file",
        "Done: the report is in report.md",
        "| south | 235 | 258 |",
        "chart.svg: 2 bars",
        "requests to the model: 6, cut off: 1",
        "calls: read_file 1, run_python 1, web_fetch 1, write_file 1",
        "runs of the script: 1",
        "requests to the page: 1",
    )
    places = [told.index(step) for step in steps]
    assert places == sorted(places)
