"""Conversations are found in the dashboard, and kept as files."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import pytest
from playwright.sync_api import expect

from clew.core.ids import ConversationId, new_session_id
from clew.core.route import Route, local_route
from clew.core.scope import scope_of
from clew.store.opening import open_store
from clew.store.transactions.conversations import open_conversation, rename_conversation
from clew.testing import FakeProvider, echo
from tests.acceptance.browser import PHONE, Gateway, opened_browser, visiting
from tests.acceptance.keyboard import pick, press, write
from tests.acceptance.program import Clew
from tests.contract.lifecycle.filling import fill

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from clew.store.contract import Tx

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]

DAY: Final = 24 * 60 * 60 * 1000
PLACES: Final = {
    "Roses": local_route("roses"),
    "Trip of Ann": Route(platform="telegram", kind="dm", chat="42"),
    "Trip of Bob": Route(platform="discord", kind="dm", chat="bob\u202e%"),
    "Trip of all": Route(platform="telegram", kind="group", chat="-7"),
}


def _fill(t: Tx) -> None:
    for number, (title, route) in enumerate(PLACES.items()):
        conversation = ConversationId(f"cnv_{number:028}")
        open_conversation(t, conversation, scope=scope_of(route), session_ids=new_session_id)
        rename_conversation(t, conversation, title)
        fill(t, conversation, 4, size=60)
        age = 10 * number * DAY
        update = "UPDATE lease SET updated_at = updated_at - $2 WHERE conversation_id = $1"
        t.execute(update, conversation, age)


async def _prepare(clew: Clew) -> None:
    async with await open_store(f"sqlite:///{clew.home}/clew.db", home=clew.home) as store:
        await store.write(_fill)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Generator[Gateway]:
    home = tmp_path_factory.mktemp("dashboard") / "home"
    home.mkdir()
    with FakeProvider(echo) as provider:
        made = Gateway(Clew(home).asking(provider))
        asyncio.run(_prepare(made.clew))
        made.start()
        try:
            yield made
        finally:
            made.close()


@pytest.fixture(scope="module")
def browser(gateway: Gateway) -> Generator[Browser]:
    with opened_browser() as opened:
        yield opened


def _expect_rows(page: Page, *titles: str) -> None:
    expect(page.locator(".rows .row:not(.hit) .row-title")).to_have_text(list(titles))


def test_conversations_are_found_by_person_channel_day_and_words(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        _expect_rows(page, *PLACES)
        page.keyboard.press("Control+k")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        person = page.get_by_label("Person")
        expect(person.locator("option")).to_have_text(
            [
                "Everyone",
                "This machine",
                "42 (telegram)",
                "bob\\u202e% (discord)",
                "Chat -7 (telegram)",
            ]
        )
        visit.picture("dashboard-filter")
        assert visit.find_barriers() == []
        pick(person, label="42 (telegram)")
        _expect_rows(page, "Trip of Ann")
        pick(person, label="bob\\u202e% (discord)")
        _expect_rows(page, "Trip of Bob")
        pick(person, label="Everyone")
        pick(page.get_by_label("Channel"), label="telegram")
        _expect_rows(page, "Trip of Ann", "Trip of all")
        write(page.get_by_label("To", exact=True), _day(page, 15))
        _expect_rows(page, "Trip of all")
        press(page.get_by_role("button", name="Clear the filter"))
        write(page.get_by_label("From"), _day(page, 15))
        _expect_rows(page, "Roses", "Trip of Ann")
        write(page.locator("#search"), "trip")
        _expect_rows(page, "Trip of Ann")
        expect(page.get_by_role("button", name="Filter, in use")).to_be_visible()
        press(page.get_by_role("button", name="Clear the filter"))
        _expect_rows(page, "Trip of Ann", "Trip of Bob", "Trip of all")
        write(page.locator("#search"), "x" * 57)
        pick(person, label="42 (telegram)")
        expect(page.locator(".hit .row-title").first).to_have_text("Trip of Ann")
        expect(page.locator(".hit", has_text="Roses")).to_have_count(0)
        page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
        assert page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]
        assert visit.complaints == []


def _day(page: Page, ago: int) -> str:
    """Return a day of the browser's, as its field takes it."""
    return page.evaluate(
        "ago => new Date(Date.now() - ago * 864e5).toLocaleDateString('sv-SE')", ago
    )


def test_a_conversation_is_saved_as_a_page_that_is_read_alone(
    browser: Browser, gateway: Gateway, tmp_path: Path
) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        press(page.get_by_role("link", name="Roses"))
        expect(page.locator(".message.user").first).to_be_visible()
        saved = {name: _save(page, name, tmp_path) for name in ("page", "Markdown", "JSON")}
        assert [path.name for path in saved.values()] == ["Roses.html", "Roses.md", "Roses.jsonl"]
        assert "### You" in saved["Markdown"].read_text("utf-8")
        assert '"title":"Roses"' in saved["JSON"].read_text("utf-8")
        assert visit.complaints == []
    context = browser.new_context(offline=True, java_script_enabled=False)
    alone = context.new_page()
    alone.goto(saved["page"].as_uri())
    expect(alone.get_by_role("heading", name="Roses")).to_be_visible()
    expect(alone.locator("article")).to_have_count(4)
    context.close()


def _save(page: Page, name: str, folder: Path) -> Path:
    press(page.get_by_role("button", name="Actions", exact=True))
    with page.expect_download() as download:
        press(page.get_by_role("menuitem", name=name))
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path
