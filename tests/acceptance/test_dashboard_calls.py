"""What the dashboard says of a tool call, and to somebody who looks at another tab."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from playwright.sync_api import expect

from clew.testing import FakeProvider
from clew.testing.provider import Calls, ScriptedCall, Text
from tests.acceptance.browser import Gateway, opened_browser, visiting
from tests.acceptance.keyboard import press, write
from tests.acceptance.program import Clew

if TYPE_CHECKING:
    from collections.abc import Generator

    from playwright.sync_api import Browser, Page

    from clew.testing.provider import ProviderRequest, Reply

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]

#: A tab in the background: headless ones never are.
_LOOK: Final = """
(isHidden) => {
  Object.defineProperty(document, "hidden", { get: () => isHidden, configurable: true })
  document.dispatchEvent(new Event("visibilitychange"))
}
"""
_RECORD: Final = """
() => {
  window.told = []
  const Real = window.Notification
  window.Notification = class extends Real {
    constructor(title, options) {
      super(title, options)
      window.told.push([title, options.body])
    }
  }
}
"""


def play(request: ProviderRequest) -> Reply:
    if request.messages[-1].role == "tool":
        return Text(f"result: {request.messages[-1].text[:20]}", chunks=1)
    text = request.last_user_text or ""
    if text.startswith("pay"):
        return Calls([ScriptedCall("pay", {"amount": 5, "to": "Bob"})])
    if text.startswith("look"):
        return Calls([ScriptedCall("look", {"where": "here"})])
    return Text(f"you said: {text}", chunks=20, delay=0.05)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Generator[Gateway]:
    home = tmp_path_factory.mktemp("dashboard")
    with FakeProvider(play) as provider:
        made = Gateway(Clew(home / "home").asking(provider))
        made.start()
        try:
            yield made
        finally:
            made.close()


@pytest.fixture(scope="module")
def browser(gateway: Gateway) -> Generator[Browser]:
    with opened_browser() as opened:
        yield opened


def test_a_call_tells_its_time_its_effect_and_why_it_ran(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        visit.say("look around")
        visit.expect_answer("result:")
        visit.expect_rest()
        page.locator(".tool-head").press("Enter")
        facts = page.locator(".call-facts")
        expect(facts).to_contain_text("changes nothing")
        expect(facts).to_contain_text(" s")
        expect(facts.locator("dt")).to_have_text(["Time", "Effect", "Allowed"])
        visit.say("pay him")
        press(page.get_by_role("button", name="Say why"))
        write(page.get_by_label("Why not"), "too much")
        press(page.get_by_role("button", name="Deny"))
        visit.expect_rest()
        press(page.locator(".tool-head").last)
        expect(facts.last.locator("dt").last).to_have_text("Denied")
        visit.picture("dashboard-call")
        assert visit.find_barriers() == []
        assert visit.complaints == []


def _look(page: Page, *, away: bool) -> None:
    page.evaluate(_LOOK, away)


def test_who_looks_at_another_tab_is_told_of_answers_and_questions(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway, permissions=["notifications"]) as visit:
        page = visit.page
        page.evaluate(_RECORD)
        visit.say("hello")
        visit.expect_answer("you said: hello")
        visit.expect_rest()
        assert not page.title().startswith("●")
        visit.say("again")
        _look(page, away=True)
        expect(page.locator(".message.answer:not(.live)")).to_have_count(2)
        visit.expect_rest()
        assert page.title().startswith("●")
        assert page.evaluate("window.told.at(-1)[1]") == "you said: again"
        _look(page, away=False)
        assert not page.title().startswith("●")
        visit.say("pay him")
        _look(page, away=True)
        expect(page.locator(".approval")).to_be_visible()
        assert page.evaluate("window.told.at(-1)[1]") == "A tool call waits for your approval"
        _look(page, away=False)
        told = page.evaluate("window.told.length")
        press(page.get_by_role("button", name="Allow once"))
        visit.expect_answer("result:")
        visit.expect_rest()
        assert page.evaluate("window.told.length") == told
