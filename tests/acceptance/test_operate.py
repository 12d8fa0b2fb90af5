"""The pages for operators in a browser: what they show, and each action on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from clew.testing import FakeProvider
from tests.acceptance.browser import Gateway, opened_browser, visiting
from tests.acceptance.program import Clew

if TYPE_CHECKING:
    from collections.abc import Generator

    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with opened_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Generator[Gateway]:
    home = tmp_path_factory.mktemp("operate")
    with FakeProvider(lambda request: f"you said: {request.last_user_text}") as provider:
        made = Gateway(Clew(home / "home").asking(provider))
        made.start()
        try:
            yield made
        finally:
            made.close()


def test_a_job_is_added_changed_run_and_removed(browser: Browser, gateway: Gateway) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        page.get_by_role("link", name="Operate").click()
        expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
        expect(page.get_by_text("No jobs yet")).to_be_visible()
        page.get_by_role("button", name="Add a job").click()
        page.get_by_label("What the agent is to do").fill("water the plants")
        page.get_by_label("Or every").fill("soon")
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.locator(".dialog [role=alert]")).to_contain_text("soon")
        page.get_by_label("Or every").fill("1d")
        page.keyboard.press("Enter")
        row = page.locator("table.data tbody tr", has_text="water the plants")
        expect(row).to_contain_text("every")
        visit.picture("operate-jobs")
        row.get_by_role("button", name="Pause").click()
        expect(row).to_contain_text("paused")
        row.get_by_role("button", name="Resume").click()
        expect(row.get_by_role("button", name="Pause")).to_be_visible()
        row.get_by_role("button", name="More for").click()
        page.get_by_role("menuitem", name="Run now").click()
        row.get_by_role("button", name="More for").click()
        page.get_by_role("menuitem", name="Log").click()
        fires = page.get_by_role("table", name="Fires")
        expect(fires.get_by_role("link", name="conversation")).to_be_visible()
        assert visit.find_barriers() == []
        row.get_by_role("button", name="More for").click()
        page.get_by_role("menuitem", name="Change its time").click()
        page.get_by_label("Or every").fill("2d")
        page.get_by_role("button", name="Save").click()
        expect(row).to_contain_text("2d")
        row.get_by_role("button", name="More for").click()
        page.get_by_role("menuitem", name="Remove").click()
        assert visit.find_barriers() == []
        page.get_by_role("button", name="Remove").click()
        expect(page.get_by_text("No jobs yet")).to_be_visible()
        assert visit.complaints == []
