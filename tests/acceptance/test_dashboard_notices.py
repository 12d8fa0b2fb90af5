"""Notices of the dashboard while nobody looks at it, and its page without a network."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from clew.testing import Calls, FakeProvider, ScriptedCall, Text
from tests.acceptance.browser import Gateway, visiting
from tests.acceptance.program import Clew
from tests.features.push_service import PushService

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from playwright.sync_api import Browser

    from clew.testing import ProviderRequest, Reply
    from tests.acceptance.browser import Visit

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]


def play(request: ProviderRequest) -> Reply:
    text = request.last_user_text or ""
    if request.messages[-1].role == "tool":
        return Text("it is paid")
    if text.startswith("pay"):
        return Calls([ScriptedCall("pay", {"amount": 5, "to": text[4:]})])
    return Text("done " * 20, chunks=20, delay=0.1)


@pytest.fixture
def service() -> PushService:
    return PushService()


@pytest.fixture
def gateway(tmp_path: Path, service: PushService) -> Generator[Gateway]:
    with FakeProvider(play) as provider, service.running() as url:
        clew = Clew(tmp_path / "home").asking(provider)
        made = Gateway(clew.with_env({"CLEW_DASHBOARD__PUSH_SERVICES": json.dumps([url])}))
        made.start()
        try:
            yield made
        finally:
            made.close()


@contextmanager
def told(browser: Browser, gateway: Gateway, service: PushService) -> Generator[Visit]:
    """A browser whose notices are turned on."""
    with visiting(browser, gateway, permissions=["notifications"]) as visit:
        page = visit.page
        page.add_init_script(service.script)
        page.reload()
        page.get_by_role("button", name="More", exact=True).click()
        page.get_by_role("menuitem", name="Turn notices on").click()
        expect(page.get_by_text("tells you of answers and questions")).to_be_visible()
        yield visit
        assert visit.complaints == []


def test_an_answer_is_told_once_and_a_browser_that_is_gone_is_forgotten(
    browser: Browser, gateway: Gateway, service: PushService
) -> None:
    with told(browser, gateway, service) as visit:
        visit.say("take your time")
        visit.expect_rest()
        (answer,) = service.wait_for(1)
        assert answer["text"] == "done " * 20
        header = service.headers[0]
        key = visit.page.evaluate("window.applicationKey")
        assert header["authorization"].endswith(f" k={key}")
        assert (header["content-encoding"], header["ttl"]) == ("aes128gcm", "86400")
        service.status = 410
        visit.say("once more")
        visit.expect_rest()
        service.wait_for(2)
        # Its removal is stored before the next turn is looked at.
        for _ in range(2):
            visit.say("and again")
            visit.expect_rest()
        assert len(service.notices) <= 3


def test_a_question_is_answered_in_its_notice_if_all_of_it_is_shown(
    browser: Browser, gateway: Gateway, service: PushService
) -> None:
    with told(browser, gateway, service) as visit:
        page = visit.page
        visit.say("pay Bob")
        (question,) = service.wait_for(1, "question")
        assert question["whole"]
        assert json.loads(question["text"].removeprefix("pay ")) == {"amount": 5, "to": "Bob"}
        (worker,) = page.context.service_workers
        worker.evaluate("notice => self.tell(notice)", {**question, "conversation": "x"})
        shown = worker.evaluate(
            """async () => {
              const [{ body, actions }] = await self.registration.getNotifications()
              return { body, actions: actions.map((one) => one.action) }
            }"""
        )
        assert shown == {"body": question["text"], "actions": ["approve", "deny"]}
        worker.evaluate("notice => self.answer(notice, 'approve')", question)
        visit.expect_answer("it is paid")
        visit.expect_rest()
        # Too long to be judged in a notice.
        visit.say(f"pay {'Eve ' * 100}")
        assert not service.wait_for(2, "question")[1]["whole"]
        page.get_by_role("button", name="Deny").click()
        visit.expect_rest()


def test_without_a_network_the_page_opens_keeps_a_draft_and_goes_on_by_itself(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        page.evaluate("navigator.serviceWorker.ready.then(() => true)")
        page.reload()
        expect(page.locator("#composer")).to_be_visible()
        page.locator("#composer").fill("a draft")
        gateway.kill()
        page.reload()
        expect(page.get_by_text("The gateway cannot be reached")).to_be_visible()
        assert visit.find_barriers() == []
        gateway.start()
        expect(page.locator("#composer")).to_have_value("a draft")
        manifest = page.evaluate(
            "fetch(document.querySelector('link[rel=manifest]').href).then(a => a.json())"
        )
        for icon in manifest["icons"]:
            found = page.request.get(f"{gateway.url}/{icon['src']}")
            assert (found.status, found.headers["content-type"]) == (200, icon["type"])
