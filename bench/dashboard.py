"""The dashboard in a browser: first paint, opening, frames while an answer streams, memory."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from bench.figures import Figure, percentile
from bench.lasting import MANY, find_conversation, lengthen_and_rotate
from bench.places import scratch
from bench.streaming import SPEED
from bench.turns import provider, serve, turn
from tests.acceptance.browser import opened_browser

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page, ViewportSize

    from clew.core.ids import ConversationId

VISITS, OPENINGS = 7, 7
_SIZE: Final[ViewportSize] = {"width": 1280, "height": 800}
#: Seconds for which frames are counted.
STREAMED: Final = 30
SCROLLED: Final = 300

#: Tells when a person can write, and sees what there is.
_WATCH: Final = """
window.usable = new Promise((resolve) => {
  new MutationObserver((_, watcher) => {
    if (!document.querySelector("#composer") || !document.querySelector(".row")) return
    watcher.disconnect()
    resolve(performance.now())
  }).observe(document, { childList: true, subtree: true })
})
"""
#: Milliseconds until something was seen, which is told a little later.
_PAINTED: Final = """
() => new Promise((resolve) => {
  new PerformanceObserver((list) => {
    const found = list.getEntriesByName("first-contentful-paint")[0]
    if (found) resolve(found.startTime)
  }).observe({ type: "paint", buffered: true })
})
"""
#: Milliseconds from the click to the picture in which the end of the conversation is.
_OPEN: Final = """
(address) => new Promise((resolve) => {
  const begun = performance.now()
  const look = () => {
    const area = document.querySelector(".transcript")
    const isThere = area && area.querySelectorAll(".message").length > 5
    const isAtEnd = area && area.scrollHeight - area.scrollTop - area.clientHeight < 2
    if (isThere && isAtEnd) requestAnimationFrame(() => resolve(performance.now() - begun))
    else requestAnimationFrame(look)
  }
  location.hash = address
  requestAnimationFrame(look)
})
"""
#: Milliseconds of each frame from now on.
FRAMES: Final = """
(seconds) => new Promise((resolve) => {
  const frames = []
  const begun = performance.now()
  let last = begun
  const note = (now) => {
    frames.push(now - last)
    last = now
    if (now - begun > seconds * 1000) resolve(frames.slice(1))
    else requestAnimationFrame(note)
  }
  requestAnimationFrame(note)
})
"""
#: The same while a person turns the wheel towards the beginning.
_SCROLL: Final = """
(count) => new Promise((resolve) => {
  const area = document.querySelector(".transcript")
  const frames = []
  let last = performance.now()
  const step = (now) => {
    frames.push(now - last)
    last = now
    area.scrollTop -= 120
    if (frames.length > count) resolve(frames.slice(1))
    else requestAnimationFrame(step)
  }
  requestAnimationFrame(step)
})
"""
_SAID: Final = """\
A question of **some** length about `begin()`: is it stored, and where?

```python
def begin(store, item):
    return store.write(consume, item)
```

| step | stored |
|---|---|
| accept | the message |
"""


async def measure() -> list[Figure]:
    """Measure all of it in the system's Chromium."""
    return await asyncio.to_thread(_measure)


def _measure() -> list[Figure]:
    with scratch() as folder, provider("bench.streaming:write_markdown") as asked:
        conversation = prepare(folder, asked)
        with serve(folder, asked, None) as server, opened_browser() as browser:
            url = f"http://127.0.0.1:{server.port}/"
            figures = _visit(browser, url)
            page = browser.new_page(viewport=_SIZE)
            page.goto(url)
            page.locator(".row").first.wait_for()
            figures += _open(page, f"#/c/{conversation}")
            figures += _stream(page)
    return figures


def prepare(folder: Path, asked: str) -> ConversationId:
    """Make a long conversation, whose context is short, in a store."""
    with serve(folder, asked, None) as server:
        for _ in range(5):
            turn(server.port, "long", text=_SAID)
        conversation = find_conversation(server.port, "long")
    asyncio.run(lengthen_and_rotate(folder / "home", {MANY: conversation}))
    return conversation


def _visit(browser: Browser, url: str) -> list[Figure]:
    """Load the page anew, without a cache, some times."""
    plain: list[float] = []
    painted: list[float] = []
    usable: list[float] = []
    for _ in range(VISITS):
        page = browser.new_page(viewport=_SIZE)
        page.goto(f"{url}healthz")
        plain.append(page.evaluate(_PAINTED))
        page.close()
        page = browser.new_page(viewport=_SIZE)
        page.add_init_script(_WATCH)
        page.goto(url)
        usable.append(page.evaluate("window.usable"))
        painted.append(page.evaluate(_PAINTED))
        page.close()
    baseline = percentile(plain, 0.5)
    return [
        Figure(
            name="first paint",
            value=percentile(painted, 0.5) / 1000,
            unit="s",
            target=0.3,
            ratio=percentile(painted, 0.5) / baseline,
            baseline=f"one line of text ({baseline:.0f} ms)",
        ),
        Figure(
            name="a person can write and sees the list",
            value=percentile(usable, 0.5) / 1000,
            unit="s",
            target=0.6,
            ratio=percentile(usable, 0.5) / baseline,
            baseline=f"one line of text ({baseline:.0f} ms)",
        ),
    ]


def _open(page: Page, address: str) -> list[Figure]:
    times: list[float] = []
    for _ in range(OPENINGS):
        page.evaluate("location.hash = '#/new'")
        page.locator(".welcome").wait_for()
        times.append(page.evaluate(_OPEN, address))
    quiet: list[float] = page.evaluate(FRAMES, 3)
    frames: list[float] = page.evaluate(_SCROLL, SCROLLED)
    return [
        Figure(
            name=f"a conversation of {MANY:,} entries opens",
            value=percentile(times, 0.5) / 1000,
            unit="s",
            target=0.5,
        ),
        _frames("a frame while older entries scroll in", frames, quiet),
    ]


def _stream(page: Page) -> list[Figure]:
    session: Any = page.context.new_cdp_session(page)
    page.evaluate("document.querySelector('.transcript').scrollTop = 1e9")
    before = heap(session)
    quiet: list[float] = page.evaluate(FRAMES, 3)
    page.locator("#composer").fill("go")
    page.locator("#composer").press("Enter")
    page.locator(".live").wait_for()
    frames: list[float] = page.evaluate(FRAMES, STREAMED)
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Send message").wait_for()
    time.sleep(1)
    return [
        _frames(f"a frame while {SPEED} tokens/s stream in", frames, quiet),
        Figure(
            name=f"memory of the tab after {STREAMED * SPEED:,} tokens",
            value=heap(session) - before,
            unit="MB",
            target=30,
        ),
    ]


def _frames(name: str, frames: list[float], quiet: list[float]) -> Figure:
    """Return the figure of frames, beside frames in which nothing happens."""
    value, baseline = (percentile(one, 0.95) for one in (frames, quiet))
    return Figure(
        name=f"{name}, 95 of 100",
        value=value,
        unit="ms",
        target=50,
        ratio=value / baseline,
        baseline=f"a page at rest ({baseline:.1f} ms)",
    )


def heap(session: Any) -> float:
    """Return what scripts of the page hold, after what nobody needs is gone."""
    session.send("HeapProfiler.collectGarbage")
    told = session.send("Runtime.getHeapUsage")
    return told["usedSize"] / 2**20
