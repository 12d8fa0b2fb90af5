"""Search as a person types, in the dashboard, over a million messages."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING, Final

from bench.corpus import MESSAGES, sqlite_file, vocabulary
from bench.figures import Figure, percentile
from bench.places import scratch
from bench.turns import provider, serve
from tests.acceptance.browser import opened_browser

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

#: Milliseconds from the last letter to the picture with what was found, or with nothing.
_FIND: Final = """
(text) => new Promise((resolve) => {
  const field = document.getElementById("search")
  const seen = (marks) => marks.length && marks.some((one) => text.startsWith(one.textContent))
  const look = () => {
    const marks = [...document.querySelectorAll(".hit mark")]
    const isNothing = !document.querySelector(".row") && document.querySelector(".empty")
    if (seen(marks) || isNothing) requestAnimationFrame(() => resolve(performance.now() - begun))
    else requestAnimationFrame(look)
  }
  const begun = performance.now()
  field.value = text
  field.dispatchEvent(new Event("input", { bubbles: true }))
  requestAnimationFrame(look)
})
"""
#: Words from the most common to the rarest.
WORDS: Final = [1 << power for power in range(3, 15)]


async def measure() -> list[Figure]:
    """Measure it in the system's Chromium, over SQLite."""
    made = await sqlite_file()
    return await asyncio.to_thread(_measure, made)


def _measure(made: Path) -> list[Figure]:
    with scratch() as folder, provider("bench.streaming:write_markdown") as asked:
        store = folder / "clew.db"
        shutil.copy(made, store)
        with serve(folder, asked, f"sqlite:///{store}") as server, opened_browser() as browser:
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{server.port}/")
            page.locator(".row").first.wait_for()
            times = _search(page)
    words = vocabulary()
    slowest = max(times, key=lambda word: times[word])
    return [
        Figure(
            name=f"messages found as one types, of {MESSAGES:,}, p50",
            value=percentile(times.values(), 0.5) / 1000,
            unit="s",
        ),
        Figure(
            name=f"the slowest word (the {words.index(slowest) + 1:,}. most common)",
            value=times[slowest] / 1000,
            unit="s",
            target=1,
        ),
    ]


def _search(page: Page) -> dict[str, float]:
    times: dict[str, float] = {}
    words = vocabulary()
    for number in WORDS:
        word = words[number]
        page.locator("#search").fill("")
        page.locator(".hit").first.wait_for(state="detached")
        times[word] = page.evaluate(_FIND, word)
    return times
