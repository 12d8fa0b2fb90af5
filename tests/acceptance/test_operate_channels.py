"""The pages of channels, people, deliveries, activity and cost in a browser, with their actions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from clew.testing import FakeProvider, Text
from clew.testing.webhook import FakeWebhook
from tests.acceptance.browser import PHONE, Gateway, visiting
from tests.acceptance.keyboard import pick, press, write
from tests.acceptance.program import Clew
from tests.waiting import block_until

if TYPE_CHECKING:
    from collections.abc import Generator

    from playwright.sync_api import Browser, Locator, Page

    from clew.testing import ProviderRequest, Reply
    from tests.acceptance.browser import Visit

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]

PAGES = ("activity", "usage", "channels", "people", "deliveries")


def play(request: ProviderRequest) -> Reply:
    text = request.last_user_text or ""
    if text.startswith("slowly"):
        return Text("word " * 2000, chunks=2000, delay=0.05)
    return Text(f"you said: {text}", chunks=2)


@pytest.fixture(scope="module")
def webhook() -> Generator[FakeWebhook]:
    with FakeWebhook() as fake:
        yield fake


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, webhook: FakeWebhook) -> Generator[Gateway]:
    home = tmp_path_factory.mktemp("operate")
    settings = {
        "BASE_URL": webhook.answers_url,
        "SECRET": webhook.secret,
        "ALLOW": '["42", "43", "44", "45", "46"]',
        "OPERATORS": '["7"]',
        "PAIRING": "on",
    }
    own = {f"CLEW_CHANNELS__WEBHOOK__{name}": value for name, value in settings.items()}
    with FakeProvider(play) as provider:
        made = Gateway(Clew(home / "home").asking(provider).with_env(own))
        made.start()
        webhook.set_target(f"{made.url}/hooks/webhook")
        try:
            yield made
        finally:
            made.close()


def open_page(visit: Visit, title: str) -> Page:
    page = visit.page
    if not page.url.partition("#")[2].startswith("/operate"):
        press(page.get_by_role("link", name="Operate"))
    press(page.get_by_role("link", name=title, exact=True))
    expect(page.get_by_role("heading", name=title, level=1)).to_be_visible()
    return page


def row(page: Page, text: str, table: str | None = None) -> Locator:
    tables = page.locator("table.data") if table is None else page.get_by_role("table", name=table)
    return tables.locator("tbody tr", has_text=text)


def press_until(page: Page, target: Locator, key: str = "Tab") -> None:
    """Press a key until something has the focus."""
    for _ in range(100):
        if target.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press(key)
    raise AssertionError("the keyboard does not lead there")


def test_what_did_not_arrive_is_sent_again_and_given_up(
    browser: Browser, gateway: Gateway, webhook: FakeWebhook
) -> None:
    webhook.refuse_chat("42")
    webhook.post_message("hello")
    with visiting(browser, gateway) as visit:
        page = open_page(visit, "Channels")
        expect(row(page, "webhook")).to_contain_text("connected")
        expect(row(page, "webhook")).to_contain_text("1 given up")
        assert visit.find_barriers() == []
        visit.picture("operate-channels")
        press(row(page, "webhook").get_by_role("link", name="given up"))
        letter = row(page, "you said: hello")
        expect(letter).to_contain_text("410")
        assert visit.find_barriers() == []
        visit.picture("operate-deliveries")
        webhook.accept_chat("42")
        press(letter.get_by_role("button", name="Send again"))
        expect(page.get_by_text("Everything has arrived.")).to_be_visible()
        assert webhook.list_texts("42") == ["you said: hello"]
        # By keyboard alone: one that waits is given up.
        webhook.throttle_chat("43", 3600)
        webhook.post_message("later", user="43")
        pick(page.get_by_label("Channel", exact=True), "")
        pick(page.get_by_label("Show", exact=True), "open")
        late = row(page, "you said: later")
        expect(late).to_contain_text("43")
        page.locator("body").press("Tab")
        press_until(page, late.get_by_role("button", name="Give up"))
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_be_visible()
        assert visit.find_barriers() == []
        press_until(page, page.get_by_role("dialog").get_by_role("button", name="Give up"))
        page.keyboard.press("Enter")
        expect(page.get_by_text("Nothing is on its way.")).to_be_visible()
        pick(page.get_by_label("Show", exact=True), "failed")
        expect(row(page, "you said: later")).to_contain_text("dropped by the operator")
        assert visit.complaints == []


def ask_for_code(webhook: FakeWebhook, user: str) -> str:
    """Have a stranger write; return the code that they are shown."""
    before = len(webhook.list_texts(user))
    webhook.post_message("may I?", user=user, name="Ann\u202e")
    block_until(lambda: len(webhook.list_texts(user)) > before)
    return find_code(webhook, user)


def find_code(webhook: FakeWebhook, user: str) -> str:
    found = re.search(r"\b[A-Z2-9]{4}-?[A-Z2-9]{4}\b", webhook.list_texts(user)[-1])
    assert found is not None
    return found[0]


def test_a_person_is_let_in_by_their_code_shut_out_and_blocked(
    browser: Browser, gateway: Gateway, webhook: FakeWebhook
) -> None:
    code = ask_for_code(webhook, "5")
    with visiting(browser, gateway) as visit:
        page = open_page(visit, "People")
        person = row(page, "5", "People who asked")
        expect(person).to_contain_text("waiting")
        assert code not in page.content()
        visit.picture("operate-people")
        press(person.get_by_role("button", name="Let in"))
        write(page.get_by_label("Code"), "ABCD-EFGH")
        assert visit.find_barriers() == []
        press(page.get_by_role("button", name="Let in", exact=True))
        expect(page.locator(".dialog [role=alert]")).to_contain_text("not valid")
        write(page.get_by_label("Code"), code.lower())
        page.keyboard.press("Enter")
        expect(person).to_contain_text("has access")
        block_until(lambda: "You have access now" in webhook.list_texts("5")[-1])
        assert visit.find_barriers() == []
        for action, outcome in (("Shut out", "shut out"), ("Block", "blocked")):
            press(person.get_by_role("button", name="More for"))
            press(page.get_by_role("menuitem", name=action))
            press(page.get_by_role("dialog").get_by_role("button", name=action))
            expect(person).to_contain_text(outcome)
        press(person.get_by_role("button", name="More for"))
        press(page.get_by_role("menuitem", name="Unblock"))
        press(page.get_by_role("dialog").get_by_role("button", name="Unblock"))
        expect(person).to_contain_text("shut out")
        again = ask_for_code(webhook, "5")
        press(page.get_by_role("button", name="Let somebody in"))
        write(page.get_by_label("Code"), again)
        page.keyboard.press("Enter")
        expect(person).to_contain_text("has access")
        allowed = row(page, "46", "People let in by the settings")
        press(allowed.get_by_role("button", name="Shut out"))
        press(page.get_by_role("dialog").get_by_role("button", name="Shut out"))
        expect(allowed).to_contain_text("shut out")
        expect(row(page, "7", "People let in by the settings")).to_contain_text("operator")
        assert visit.complaints == []


def test_accounts_that_a_person_has_linked_are_parted(
    browser: Browser, gateway: Gateway, webhook: FakeWebhook
) -> None:
    webhook.post_message("/link", user="44")
    block_until(lambda: webhook.list_texts("44"))
    webhook.post_message(f"/link {find_code(webhook, '44')}", user="45")
    with visiting(browser, gateway) as visit:
        page = open_page(visit, "People")
        link = row(page, "45", "Linked accounts")
        expect(link).to_contain_text("44 (webhook)")
        assert visit.find_barriers() == []
        press(link.get_by_role("button", name="Part"))
        press(page.get_by_role("dialog").get_by_role("button", name="Part"))
        expect(link).to_have_count(0)
        assert visit.complaints == []


def test_running_turns_and_queues_are_seen_lead_to_the_conversation_and_are_stopped(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        visit.say("slowly, please")
        expect(page.locator(".answer", has_text="word")).to_be_visible()
        visit.say("and then this")
        expect(page.locator(".waiting")).to_have_count(1)
        page.wait_for_url("**/#/c/cnv_*")
        talk = page.url
        open_page(visit, "Activity")
        turn = row(page, "slowly", "Turns")
        expect(turn).to_contain_text("running")
        expect(turn).to_contain_text("serve")
        expect(row(page, "and then this", "Queues")).to_contain_text("1")
        assert visit.find_barriers() == []
        visit.picture("operate-activity")
        press(turn.get_by_role("link"))
        expect(page.locator(".answer", has_text="word")).to_be_visible()
        assert page.url == talk
        press(page.get_by_role("link", name="Operate"))
        open_page(visit, "Activity")
        press(turn.get_by_role("button", name="Stop"))
        expect(page.get_by_text("The agent rests.")).to_be_visible()
        expect(page.get_by_text("No message waits.")).to_be_visible()
        assert visit.complaints == []


def test_usage_is_shown_by_day_and_by_what_is_chosen(browser: Browser, gateway: Gateway) -> None:
    with visiting(browser, gateway) as visit:
        visit.say("count me")
        visit.expect_answer("you said: count me")
        visit.expect_rest()
        page = open_page(visit, "Tokens and cost")
        expect(row(page, "fake-model", "Usage")).to_be_visible()
        expect(page.get_by_role("img", name="by day")).to_be_visible()
        assert visit.find_barriers() == []
        visit.picture("operate-usage")
        for by, text in (
            ("conversation", "count me"),
            ("channel", "This machine"),
            ("person", "This machine"),
        ):
            pick(page.get_by_label("By", exact=True), by)
            expect(row(page, text, "Usage")).to_be_visible()
        row_of_today = page.get_by_role("table", name="Usage").locator("tbody tr")
        pick(page.get_by_label("By", exact=True), "day")
        expect(row_of_today).to_have_count(1)
        pick(page.get_by_label("Last", exact=True), "365")
        expect(page.get_by_role("img", name="365 days")).to_be_visible()
        assert visit.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_fit_on_a_phone(browser: Browser, gateway: Gateway, scheme: str) -> None:
    phone: dict[str, Any] = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
    with visiting(browser, gateway, color_scheme=scheme, device_scale_factor=2, **phone) as visit:
        page = visit.page
        for name in PAGES:
            page.goto(f"{gateway.url}/#/operate/{name}")
            expect(page.locator("main h1")).to_be_visible()
            expect(page.locator(".data, .empty").first).to_be_visible()
            assert page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]
            assert visit.find_barriers() == []
            visit.picture(f"operate-phone-{name}-{scheme}")
        assert visit.complaints == []
