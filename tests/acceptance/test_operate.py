"""The pages for operators in a browser: what they show, and each action on them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from clew.testing import Calls, FakeProvider, ScriptedCall, Text
from tests.acceptance.browser import PHONE, Gateway, visiting
from tests.acceptance.keyboard import pick, press, write
from tests.acceptance.program import Clew
from tests.features.mcp_world import Plan

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page

    from clew.testing import ProviderRequest, Reply
    from tests.acceptance.browser import Visit

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]

#: What a server calls its tool, and says of it.
EVIL = "<img src=x onerror=alert(1)>"
SKILL = """\
---
name: watering
description: Water plants. Use when somebody asks about plants.
---
Ask how many there are. See https://plants.example.
"""


def play(request: ProviderRequest) -> Reply:
    text = request.last_user_text or ""
    if request.messages[-1].role == "tool":
        return Text(f"result: {request.messages[-1].text}")
    match text.split(" ", 1):
        case ["start", command]:
            return Calls([ScriptedCall("shell", {"command": command, "background": True})])
        case ["delegate", task]:
            return Calls([ScriptedCall("delegate", {"task": task})])
        case ["evil", to]:
            args = {"server": "evil", "tool": EVIL, "args": {"to": to}}
            return Calls([ScriptedCall("mcp_call", args)])
        case ["pay", payee]:
            return Calls([ScriptedCall("pay", {"amount": 5, "to": payee})])
        case _:
            return Text(f"you said: {text}")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Generator[Gateway]:
    home = tmp_path_factory.mktemp("operate")
    with FakeProvider(play) as provider:
        made = Gateway(Clew(home / "home").asking(provider))
        skill = made.clew.home / "skills" / "watering"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(SKILL, encoding="utf-8")
        made.start()
        try:
            yield made
        finally:
            made.close()


def row_of(page: Page, text: str) -> Locator:
    return page.locator("table.data tbody tr", has_text=text)


def choose(row: Locator, name: str) -> None:
    """Choose an action in the menu of a row."""
    press(row.get_by_role("button", expanded=False).last)
    press(row.page.get_by_role("menuitem", name=name))


def open_page(visit: Visit, name: str) -> Page:
    """Go to a page for operators by its address; nothing there keeps anybody out."""
    visit.page.goto(f"{visit.gateway.url}/#/operate/{name}")
    visit.page.locator(".operate-body").wait_for()
    expect(visit.page.locator(".operate-body .loading")).to_have_count(0)
    return visit.page


def test_a_job_is_added_changed_run_and_removed(browser: Browser, gateway: Gateway) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        press(page.get_by_role("link", name="Operate"))
        expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
        expect(page.get_by_text("No jobs yet")).to_be_visible()
        press(page.get_by_role("button", name="Add a job"))
        write(page.get_by_label("What the agent is to do"), "water the plants")
        write(page.get_by_label("Or every"), "soon")
        press(page.get_by_role("button", name="Add", exact=True))
        expect(page.locator(".dialog [role=alert]")).to_contain_text("soon")
        write(page.get_by_label("Or every"), "1d")
        page.keyboard.press("Enter")
        row = row_of(page, "water the plants")
        expect(row).to_contain_text("every")
        visit.picture("operate-jobs")
        press(row.get_by_role("button", name="Pause"))
        expect(row).to_contain_text("paused")
        press(row.get_by_role("button", name="Resume"))
        expect(row.get_by_role("button", name="Pause")).to_be_visible()
        choose(row, "Run now")
        choose(row, "Log")
        fires = page.get_by_role("table", name="Fires")
        expect(fires.get_by_role("link", name="conversation")).to_be_visible()
        assert visit.find_barriers() == []
        choose(row, "Change its time")
        write(page.get_by_label("Or every"), "2d")
        press(page.get_by_role("button", name="Save"))
        expect(row).to_contain_text("2d")
        choose(row, "Remove")
        assert visit.find_barriers() == []
        press(page.get_by_role("button", name="Remove"))
        expect(page.get_by_text("No jobs yet")).to_be_visible()
        assert visit.complaints == []


def test_a_fact_is_remembered_corrected_pinned_found_and_forgotten(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway) as visit:
        page = open_page(visit, "memory")
        press(page.get_by_role("button", name="Remember"))
        write(page.get_by_label("What to remember"), "Ada likes tea")
        pick(page.get_by_label("Kind"), "preference")
        press(page.locator(".dialog").get_by_role("button", name="Remember"))
        row = row_of(page, "Ada likes tea")
        expect(row).to_contain_text("preference")
        choose(row, "Correct")
        write(page.get_by_label("What is remembered", exact=True).last, "Ada likes green tea")
        press(page.get_by_role("button", name="Save"))
        row = row_of(page, "Ada likes green tea")
        choose(row, "Pin")
        expect(row).to_contain_text("pinned")
        visit.picture("operate-memory")
        assert visit.find_barriers() == []
        search = page.get_by_label("Search what is remembered")
        write(search, "coffee")
        expect(page.get_by_text("Nothing found")).to_be_visible()
        write(search, "tea")
        choose(row, "Forget")
        press(page.get_by_role("button", name="Forget", exact=True))
        expect(row).to_have_count(0)
        assert gateway.clew.data("memory", "list")["items"] == []
        assert visit.complaints == []


def test_a_skill_is_looked_at_and_trusted_and_not_any_more(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway) as visit:
        page = open_page(visit, "skills")
        press(page.get_by_role("link", name="watering"))
        expect(page.get_by_role("heading", name="watering")).to_be_visible()
        expect(page.locator(".operate-body")).to_contain_text("plants.example")
        assert visit.find_barriers() == []
        press(page.get_by_role("button", name="Trust this version"))
        expect(page.locator(".state")).to_have_text("trusted")
        press(page.get_by_role("button", name="Trust it no more"))
        expect(page.get_by_role("button", name="Trust this version")).to_be_visible()
        assert visit.complaints == []


def test_an_allowed_call_is_seen_and_revoked_and_asks_again(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        visit.say("pay Bob")
        press(page.get_by_role("button", name="always"))
        visit.expect_answer("result:")
        visit.expect_rest()
        open_page(visit, "grants")
        row = row_of(page, "pay")
        assert visit.find_barriers() == []
        press(row.get_by_role("button", name="Revoke"))
        expect(page.get_by_text("Nothing is allowed beforehand")).to_be_visible()
        page.go_back()
        visit.say("pay Bob")
        press(page.get_by_role("button", name="Deny"))
        visit.expect_rest()


def test_one_more_browser_is_let_in_by_a_link_and_logged_out_by_the_keyboard(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway) as visit:
        page = open_page(visit, "logins")
        rows = page.locator("table.data tbody tr")
        expect(rows).not_to_have_count(0)
        before = rows.count()
        press(page.get_by_role("button", name="Let one more in"))
        link = page.get_by_label("Address").inner_text()
        other = browser.new_context(user_agent="Another/1.0")
        try:
            guest = other.new_page()
            guest.goto(link)
            expect(guest.locator("#composer")).to_be_visible()
            page.reload()
            expect(rows).to_have_count(before + 1)
            assert visit.find_barriers() == []
            rows.filter(has_text="Another").get_by_role("button", name="Log out").focus()
            page.keyboard.press("Enter")
            expect(rows).to_have_count(before)
            guest.reload()
            expect(guest.locator("#token")).to_be_visible()
        finally:
            other.close()


def test_a_process_is_read_beside_the_talk_gets_input_and_is_stopped(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        visit.say("start echo aside; cat")
        visit.expect_answer("result:")
        beside = page.get_by_role("complementary", name="Beside the conversation")
        press(beside.get_by_role("button", name="Output: echo aside"))
        expect(beside.get_by_label("Output of")).to_contain_text("aside")
        assert visit.find_barriers() == []
        press(beside.get_by_role("button", name="Stop: echo aside"))
        expect(beside.get_by_role("button", name="Stop")).to_have_count(0)
        press(beside.get_by_role("button", name="Output: echo aside"))
        expect(beside).to_have_count(0)
        expect(page.locator("#composer")).to_be_focused()
        # A new conversation: the end of what was stopped is told in this one, and answered.
        page.goto(f"{gateway.url}/#/new")
        expect(page.locator(".answer")).to_have_count(0)
        visit.say("start echo ready; cat")
        visit.expect_answer("result:")
        open_page(visit, "processes")
        row = row_of(page, "echo ready").first
        choose(row, "Output")
        output = page.get_by_label("Output")
        expect(output).to_contain_text("ready")
        choose(row, "Send input")
        write(page.get_by_label("Line"), "hello there")
        page.keyboard.press("Enter")
        expect(output).to_contain_text("hello there")
        assert visit.find_barriers() == []
        press(row.get_by_role("button", name="Stop"))
        expect(row).to_contain_text("stopped")
        assert visit.complaints == []


def test_goals_and_delegated_work_are_shown_with_what_can_be_done(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        visit.say("delegate count the plants")
        visit.expect_answer("result:")
        visit.expect_rest()
        open_page(visit, "agents")
        row = row_of(page, "count the plants").first
        choose(row, "Result")
        expect(page.get_by_label("Result")).to_contain_text("count the plants")
        assert visit.find_barriers() == []
        page.go_back()
        page.go_back()
        visit.say("/goal grow ten plants")
        expect(page.locator(".reply")).to_be_visible()
        open_page(visit, "goals")
        press(page.get_by_label("Also those that have ended"), "Space")
        goal = row_of(page, "grow ten plants").first
        choose(goal, "Rounds")
        expect(page.get_by_role("table", name="Rounds")).to_be_visible()
        choose(goal, "Give it up")
        expect(goal).to_contain_text("stopped")
        assert visit.find_barriers() == []
        for name in ("nothing", "%E0%A4%A"):
            open_page(visit, name)
            expect(page.get_by_text("There is no page")).to_be_visible()
        assert visit.complaints == []


def test_on_a_phone_tables_are_cards_that_fit(browser: Browser, gateway: Gateway) -> None:
    phone: dict[str, Any] = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
    with visiting(browser, gateway, color_scheme="dark", **phone) as visit:
        for name in ("jobs", "goals", "agents", "processes", "memory", "skills", "mcp", "logins"):
            page = open_page(visit, name)
            width = page.evaluate("document.scrollingElement.scrollWidth")
            assert width <= PHONE["width"], name
            assert visit.find_barriers() == [], name
        visit.picture("operate-phone")
        page.get_by_role("button", name="Pages").click()
        page.get_by_role("link", name="Memory").click()
        expect(page.get_by_role("heading", name="Memory")).to_be_visible()
        assert visit.complaints == []


@pytest.mark.unequal("a server that is not there changes the tools, which are read later")
def test_a_server_that_is_down_is_shown_with_the_reason_and_one_that_is_hostile_as_text(
    browser: Browser, tmp_path: Path
) -> None:
    plan = Plan(tmp_path / "evil.json", {EVIL: {"description": EVIL}})
    command = json.dumps(plan.make_server(official=True).command)
    with FakeProvider(play) as provider:
        gateway = Gateway(Clew(tmp_path / "home").asking(provider))
        gateway.clew.home.mkdir()
        settings = (
            '[mcp.gone]\ncommand = ["/nowhere/at/all"]\n'
            f'[mcp.evil]\ncommand = {command}\nlevel = "host"\n'
        )
        (gateway.clew.home / "config.toml").write_text(settings, encoding="utf-8")
        gateway.start()
        with visiting(browser, gateway) as visit:
            page = open_page(visit, "mcp")
            expect(row_of(page, "gone")).to_contain_text("down")
            expect(row_of(page, "gone")).to_contain_text("/nowhere/at/all")
            expect(row_of(page, "evil")).to_contain_text("up")
            assert visit.find_barriers() == []
            page.goto(f"{gateway.url}/#/new")
            visit.say(f"evil {EVIL}")
            expect(page.locator(".approval")).to_contain_text(EVIL)
            press(page.get_by_role("button", name="Allow once"))
            visit.expect_answer("result:")
            press(page.locator(".tool-head"))
            expect(page.locator(".tool-body")).to_contain_text(EVIL)
            assert page.locator("#app img").count() == 0
            assert visit.complaints == []
        gateway.close()
