"""A conversation of 10,000 entries in the dashboard: all of it is reached, none of it twice."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import pytest
from playwright.sync_api import expect

from clew.core.ids import ConversationId, new_session_id
from clew.core.scope import LOCAL
from clew.store.opening import open_store
from clew.store.transactions.conversations import open_conversation
from clew.testing import FakeProvider
from clew.testing.provider import Text
from tests.acceptance.browser import Gateway, opened_browser, visiting
from tests.acceptance.program import Clew
from tests.contract.lifecycle.filling import fill

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from clew.store.contract import Tx
    from clew.testing.provider import ProviderRequest, Reply

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]

ENTRIES: Final = 10_000
LONG: Final = ConversationId("cnv_0000000000000000000000long")
GROWING: Final = ConversationId("cnv_00000000000000000000growing")
#: What is drawn: the numbers of the entries, in order.
_DRAWN: Final = "all => all.map(one => Number(one.dataset.seq))"
#: Scrolls to one end of what is loaded, and tells what was drawn there, until it is the end of all.
_WALK: Final = """
async ([button, isUp]) => {
  const area = document.querySelector(".transcript")
  const drawn = () => [...area.querySelectorAll(".entry")].map((one) => Number(one.dataset.seq))
  const settled = () => new Promise((resolve) => requestAnimationFrame(resolve))
  const pages = [drawn()]
  const buttons = () => [...area.querySelectorAll("button.more")]
  const isMore = () => buttons().some((one) => one.textContent === button)
  while (isMore()) {
    const before = pages.at(-1).join()
    area.scrollTop = isUp ? 0 : area.scrollHeight
    while (isMore() && drawn().join() === before) await settled()
    pages.push(drawn())
  }
  return pages
}
"""
#: Where the first entry that is seen is on the screen.
_SEEN: Final = """
() => {
  const area = document.querySelector(".transcript")
  const topOf = (one) => one.getBoundingClientRect().top
  const entries = [...area.querySelectorAll(".entry")]
  const seen = entries.find((one) => topOf(one) >= topOf(area) + 20)
  return [Number(seen.dataset.seq), topOf(seen)]
}
"""


def play(request: ProviderRequest) -> Reply:
    return Text("word " * 150, chunks=150, delay=0.01)


async def _fill(clew: Clew) -> None:
    def write(t: Tx, conversation: ConversationId, count: int) -> None:
        open_conversation(t, conversation, scope=LOCAL, session_ids=new_session_id)
        fill(t, conversation, count, size=120)

    async with await open_store(f"sqlite:///{clew.home}/clew.db", home=clew.home) as store:
        await store.write(write, LONG, ENTRIES)
        await store.write(write, GROWING, 300)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Generator[Gateway]:
    home: Path = tmp_path_factory.mktemp("dashboard") / "home"
    home.mkdir()
    with FakeProvider(play) as provider:
        made = Gateway(Clew(home).asking(provider))
        asyncio.run(_fill(made.clew))
        made.start()
        try:
            yield made
        finally:
            made.close()


@pytest.fixture(scope="module")
def browser(gateway: Gateway) -> Generator[Browser]:
    with opened_browser() as opened:
        yield opened


def _drawn(page: Page) -> list[int]:
    return page.locator(".entry").evaluate_all(_DRAWN)


def _open(page: Page, conversation: str, *more: str) -> None:
    page.goto(f"{page.url.partition('#')[0]}#/{'/'.join(('c', conversation, *more))}")
    expect(page.locator(".entry").first).to_be_visible()


def _is_stretch(drawn: list[int]) -> bool:
    return drawn == list(range(drawn[0], drawn[-1] + 1))


def test_all_of_a_long_conversation_is_reached_and_little_of_it_is_drawn_at_a_time(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        _open(page, LONG)
        expect(page.get_by_text(f"{ENTRIES - 1}: ")).to_be_in_viewport()
        assert _drawn(page)[-1] == ENTRIES
        pages: list[list[int]] = page.evaluate(_WALK, ["Show earlier messages", True])
        assert all(map(_is_stretch, pages))
        assert {seq for drawn in pages for seq in drawn} == set(range(1, ENTRIES + 1))
        assert max(map(len, pages)) < 400
        assert pages[-1][0] == 1
        page.locator(".transcript").focus()
        page.keyboard.press("End")
        expect(page.get_by_text(f"{ENTRIES - 1}: ")).to_be_in_viewport()
        page.keyboard.press("Home")
        expect(page.locator(".entry[data-seq='1']")).to_be_in_viewport()
        page.get_by_role("button", name="To the end").click()
        expect(page.get_by_text(f"{ENTRIES - 1}: ")).to_be_in_viewport()
        assert visit.complaints == []


def test_what_is_read_stays_where_it_is_while_more_is_loaded_above_and_below(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        _open(page, LONG, "5000")
        expect(page.locator(".entry[data-seq='5000']")).to_be_in_viewport()
        expect(page.locator(".entry[data-seq='5000']")).to_be_focused()
        before = _drawn(page)
        _expect_growth_without_a_jump(page, "Show earlier messages")
        assert _drawn(page)[0] < before[0]
        _expect_growth_without_a_jump(page, "Show later messages")
        assert _drawn(page)[-1] > before[-1]
        pages: list[list[int]] = page.evaluate(_WALK, ["Show later messages", False])
        assert all(map(_is_stretch, pages))
        assert pages[-1][-1] == ENTRIES


def _expect_growth_without_a_jump(page: Page, button: str) -> None:
    count, place = len(_drawn(page)), page.evaluate(_SEEN)
    # By its own code: a click scrolls to the button first.
    page.get_by_role("button", name=button).evaluate("button => button.click()")
    expect(page.locator(".entry")).not_to_have_count(count)
    assert page.evaluate(_SEEN) == pytest.approx(place, abs=1.5)


def test_a_message_that_is_found_opens_at_its_place(browser: Browser, gateway: Gateway) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        page.keyboard.press("Control+k")
        page.keyboard.type("2468")
        page.locator(".hit a").click()
        found = page.locator(".entry[data-seq='2468']")
        expect(found).to_be_in_viewport()
        expect(found).to_be_focused()
        assert len(_drawn(page)) < 400
        assert visit.find_barriers() == []


def test_who_reads_further_up_is_not_moved_by_an_answer_and_who_reads_the_end_follows_it(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        _open(page, GROWING)
        visit.say("talk")
        expect(page.locator(".live")).to_contain_text("word word")
        page.locator(".transcript").evaluate("area => { area.scrollTop -= 600 }")
        expect(page.get_by_role("button", name="To the end")).to_be_visible()
        place: Any = page.evaluate(_SEEN)
        visit.expect_rest()
        assert page.evaluate(_SEEN) == pytest.approx(place, abs=1.5)
        visit.say("more")
        expect(page.locator(".entry[data-seq='304']")).to_be_visible()
        visit.expect_rest()
        assert page.locator(".transcript").evaluate(
            "area => area.scrollHeight - area.scrollTop - area.clientHeight < 2"
        )
        assert _is_stretch(_drawn(page))
