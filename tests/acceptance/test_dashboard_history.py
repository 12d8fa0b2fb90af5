"""What became of a conversation, in the dashboard: summaries, sessions and branches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from playwright.sync_api import expect

from clew.testing import FakeProvider
from clew.testing.provider import Text
from tests.acceptance.browser import PHONE, Gateway, visiting
from tests.acceptance.keyboard import press
from tests.acceptance.program import Clew
from tests.contract.lifecycle.doubles import SUMMARY

if TYPE_CHECKING:
    from collections.abc import Generator

    from playwright.sync_api import Browser, Page

    from clew.testing.provider import ProviderRequest, Reply
    from tests.acceptance.browser import Visit

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]

#: Some 600 tokens; of these a window of 10,000 keeps three.
LONG: Final = "it flows and flows. " * 90


def play(request: ProviderRequest) -> Reply:
    if "You keep the memory" in (request.last_user_text or ""):
        return Text(SUMMARY)
    return Text(f"heard {(request.last_user_text or '')[:7]} {LONG}", chunks=2)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Generator[Gateway]:
    home = tmp_path_factory.mktemp("dashboard")
    with FakeProvider(play) as provider:
        clew = Clew(home / "home").asking(provider)
        made = Gateway(
            clew.with_env(
                {"CLEW_MODEL__CONTEXT_WINDOW": "10000", "CLEW_COMPACTION__ENABLED": "false"}
            )
        )
        made.start()
        try:
            yield made
        finally:
            made.close()


def _talk(visit: Visit) -> None:
    for number in range(3):
        visit.say(f"river {number}: {LONG}")
        visit.expect_answer(f"heard river {number}")
        visit.expect_rest()


def _choose(page: Page, action: str) -> None:
    press(page.get_by_role("button", name="Actions", exact=True))
    press(page.get_by_role("menuitem", name=action))


def _summarise(page: Page) -> None:
    _choose(page, "Summarise older messages")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("stay as they are")
    press(dialog.get_by_role("button", name="Summarise"))
    expect(dialog).to_have_count(0)


def test_older_messages_are_summarised_after_a_look_and_read_again_by_undo(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        _talk(visit)
        _choose(page, "Summarise older messages")
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_label("What matters most")).to_be_focused()
        assert visit.find_barriers() == []
        page.keyboard.press("Escape")
        expect(page.locator(".compaction")).to_have_count(0)
        _summarise(page)
        mark = page.get_by_role("region", name="Summary of older messages")
        mark.get_by_role("button", name="Older messages were summarised").press("Enter")
        expect(mark).to_contain_text(SUMMARY.strip().splitlines()[-1])
        expect(mark).to_contain_text("in place of messages 1 to")
        assert visit.find_barriers() == []
        # What was summarised is still there.
        expect(page.locator(".message.user").first).to_contain_text("river 0")
        press(mark.get_by_role("button", name="Undo"))
        expect(mark.get_by_role("button", name="Summary, undone")).to_be_visible()
        expect(mark.get_by_role("button", name="Undo", exact=True)).to_have_count(0)
        page.reload()
        expect(page.get_by_role("button", name="Summary, undone")).to_be_visible()


def test_the_history_shows_sessions_and_branches_and_leads_to_each(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        _talk(visit)
        name = page.url.rpartition("/")[2]
        _summarise(page)
        expect(page.locator(".compaction")).to_be_visible()
        answer = page.locator(".answer", has_text="heard river 1")
        press(answer.get_by_role("button", name="Branch from here"))
        page.wait_for_url(lambda url: name not in url)
        press(page.locator(".header .lineage"))
        rows = page.locator(".lineage-rows li")
        expect(rows).to_have_count(2)
        expect(rows.first).to_contain_text("Branched from here, at message 4")
        # By the keyboard, from the branch to where it began.
        rows.first.get_by_role("link").focus()
        page.keyboard.press("Enter")
        expect(page.locator(".entry[data-seq='4']")).to_be_focused()
        assert name in page.url
        _choose(page, "History")
        expect(rows).to_have_count(3)
        expect(rows.nth(0)).to_contain_text("Began")
        expect(rows.nth(1)).to_contain_text("Branch at message 4")
        expect(rows.nth(2)).to_contain_text("Older messages summarised")
        expect(rows.nth(2).get_by_role("link")).to_have_attribute("aria-current", "step")
        visit.picture("dashboard-history")
        assert visit.find_barriers() == []
        page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
        assert page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]
        # In the picture itself.
        page.locator(".lineage-picture rect").click()
        expect(page.locator(".compaction")).to_be_visible()
        assert visit.complaints == []
