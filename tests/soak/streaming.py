"""
Answers stream into the dashboard for an hour at 200 tokens a second.

In each period the memory of the page, and every frame. The answers are Markdown with code and
lists; the conversation is the same all the time.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from bench import dashboard
from bench.figures import percentile
from bench.places import scratch
from bench.streaming import SPEED
from bench.turns import provider, serve
from tests.acceptance.browser import opened_browser
from tests.soak import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

#: Seconds of each answer in which frames are measured: asking for each costs frames.
MEASURED = 10
MINUTES = int(os.environ.get("CLEW_SOAK_MINUTES", "60"))
PERIODS = 12
#: Megabytes by which the memory may grow; milliseconds of a frame, 95 of 100.
LARGEST, LONGEST = 30, 50


def run() -> Table:
    with (
        scratch() as folder,
        provider("bench.streaming:write_markdown") as asked,
        serve(folder, asked, None) as server,
        opened_browser() as browser,
    ):
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(f"http://127.0.0.1:{server.port}/")
        page.locator("#composer").wait_for()
        rows = list(_stream(page))
    return Table(
        title=f"{MINUTES} minutes of answers at {SPEED} tokens a second",
        columns=("minute", "answers", "memory, MB more", "frame, 95 of 100, ms", "longest, ms"),
        rows=tuple(rows),
        passed=all(row[2] <= LARGEST and row[3] <= LONGEST for row in rows),
    )


def _stream(page: Page) -> Iterator[tuple[int, int, float, float, float]]:
    session = page.context.new_cdp_session(page)
    before, began, answers = dashboard.heap(session), time.monotonic(), 0
    for period in range(1, PERIODS + 1):
        frames, answers = _answer(page), answers + 1
        while time.monotonic() - began < MINUTES * 60 * period / PERIODS:
            frames += _answer(page)
            answers += 1
        minute = round((time.monotonic() - began) / 60)
        more = round(dashboard.heap(session) - before, 1)
        row = (minute, answers, more, round(percentile(frames, 0.95), 1), round(max(frames), 1))
        print(row, flush=True)
        yield row


def _answer(page: Page) -> list[float]:
    """Have one answer, of a minute, and return the frames of its beginning."""
    page.locator("#composer").fill("go")
    page.locator("#composer").press("Enter")
    page.locator(".live").wait_for()
    frames: list[float] = page.evaluate(dashboard.FRAMES, MEASURED)
    page.get_by_role("button", name="Send message").wait_for(timeout=120_000)
    return frames
