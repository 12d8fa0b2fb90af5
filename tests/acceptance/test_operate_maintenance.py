"""The pages for operators that look after the gateway itself: each page, and each action on it."""

from __future__ import annotations

import re
import sqlite3
import tomllib
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from clew.testing import FakeProvider, count_user_texts
from tests.acceptance.browser import PHONE, Gateway, visiting
from tests.acceptance.keyboard import pick, press, write
from tests.acceptance.program import Clew

if TYPE_CHECKING:
    from collections.abc import Generator

    from playwright.sync_api import Browser, Locator, Page

    from tests.acceptance.browser import Visit

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]

CANARY = "canary-5d1e8b-which-nobody-may-see"
CONFIG = f'[providers.mistral]\napi_key = "{CANARY}"\n'
PAGES = ("settings", "checks", "backups", "log", "plugins", "tools")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Generator[Gateway]:
    home = tmp_path_factory.mktemp("maintenance") / "home"
    home.mkdir()
    (home / "config.toml").write_text(CONFIG, encoding="utf-8")
    with FakeProvider(count_user_texts) as provider:
        made = Gateway(Clew(home).asking(provider))
        made.start()
        try:
            made.clew.ok("chat", "hello")
            yield made
        finally:
            made.close()


def open_page(visit: Visit, name: str, *rest: str) -> Page:
    """Go to a page, and wait until what it reads is there."""
    page = visit.page
    page.goto("/".join((f"{visit.gateway.url}/#/operate/{name}", *rest)))
    expect(page.locator(".operate-body")).to_be_visible()
    expect(page.locator(".operate-body .loading")).to_have_count(0)
    return page


def field(page: Page, name: str) -> Locator:
    return page.get_by_label(name, exact=True)


def setting(page: Page, name: str) -> Locator:
    return page.locator("form.setting", has=page.get_by_text(name, exact=True))


def test_a_setting_is_found_changed_refused_and_given_its_default(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        press(page.get_by_role("link", name="Operate"))
        press(page.get_by_role("link", name="Settings", exact=True))
        pick(page.get_by_label("Section", exact=True), "files")
        expect(page).to_have_url(re.compile("#/operate/settings/files$"))
        days = setting(page, "files.keep_days")
        expect(days).to_contain_text("Now the default")
        write(field(page, "files.keep_days"), "many")
        press(days.get_by_role("button", name="Save"))
        expect(days.get_by_role("alert")).to_contain_text("must be a whole number")
        expect(field(page, "files.keep_days")).to_have_attribute("aria-invalid", "true")
        assert visit.find_barriers() == []
        visit.picture("operate-settings")
        write(field(page, "files.keep_days"), "7")
        field(page, "files.keep_days").press("Enter")
        expect(days.get_by_role("status")).to_contain_text("applies now")
        expect(days).to_contain_text("config.toml")
        assert gateway.clew.data("config", "show")["settings"]["files.keep_days"]["value"] == 7
        press(days.get_by_role("button", name="Use the default"))
        expect(days).to_contain_text("Now the default")
        expect(field(page, "files.keep_days")).to_have_value("30")
        write(page.get_by_label("Search in all sections"), "double_text")
        expect(page.get_by_text("1 setting found")).to_be_visible()
        pick(field(page, "session.double_text"), "queue")
        press(setting(page, "session.double_text").get_by_role("button", name="Save"))
        expect(page.locator(".notice")).to_contain_text("session.double_text")
        expect(setting(page, "session.double_text")).to_contain_text("waits for a restart")
        assert visit.find_barriers() == []
        press(setting(page, "session.double_text").get_by_role("button", name="Use the default"))
        expect(page.locator(".notice")).to_have_count(0)
        assert visit.complaints == []


def test_a_secret_is_set_and_removed_and_never_shown(browser: Browser, gateway: Gateway) -> None:
    with visiting(browser, gateway) as visit:
        page = open_page(visit, "settings", "providers.mistral")
        key = field(page, "providers.mistral.api_key")
        expect(key).to_have_value("")
        expect(key).to_have_attribute("placeholder", "set")
        write(key, f"{CANARY}-2")
        press(setting(page, "providers.mistral.api_key").get_by_role("button", name="Save"))
        expect(setting(page, "providers.mistral.api_key").get_by_role("status")).to_be_visible()
        expect(key).to_have_value("")
        assert f"{CANARY}-2" in (gateway.clew.home / "config.toml").read_text()
        assert CANARY not in page.content()
        press(setting(page, "providers.mistral.api_key").get_by_role("button", name="Remove"))
        expect(page.locator(".notice")).to_contain_text("providers.mistral.api_key")
        assert CANARY not in (gateway.clew.home / "config.toml").read_text()
        (gateway.clew.home / "config.toml").write_text(CONFIG)


def test_a_table_that_the_user_names_is_begun(browser: Browser, gateway: Gateway) -> None:
    with visiting(browser, gateway) as visit:
        page = open_page(visit, "settings", "providers.NAME")
        write(page.get_by_label("Name of the new table"), "anthropic")
        write(field(page, "providers.NAME.base_url"), "http://127.0.0.1:9")
        press(page.get_by_role("button", name="Save providers.anthropic.base_url"))
        expect(page.locator(".notice")).to_contain_text("providers.anthropic.base_url")
        expect(page.get_by_label("Section", exact=True)).to_have_value("providers.anthropic")
        expect(field(page, "providers.anthropic.base_url")).to_have_value("http://127.0.0.1:9")
        write(field(page, "providers.anthropic.api_key"), '{ env = "NOT_THERE" }')
        press(page.get_by_role("button", name="Save providers.anthropic.api_key"))
        key = setting(page, "providers.anthropic.api_key")
        expect(key.get_by_role("status")).to_contain_text("is written")
        assert visit.find_barriers() == []
        written = tomllib.loads((gateway.clew.home / "config.toml").read_text())
        table = {"base_url": "http://127.0.0.1:9", "api_key": {"env": "NOT_THERE"}}
        assert written["providers"]["anthropic"] == table
        (gateway.clew.home / "config.toml").write_text(CONFIG)


def test_the_store_is_checked_and_repaired_by_the_keyboard_alone(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway) as visit:
        page = open_page(visit, "checks")
        check = page.get_by_role("button", name="Check the store")
        check.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_text("no problems.")).to_be_visible()
        # Where a turn begins is known from its entries, so it can be repaired.
        with sqlite3.connect(gateway.clew.home / "clew.db") as store:
            store.execute("UPDATE turn SET first_seq = first_seq + 1")
        store.close()
        check.focus()
        page.keyboard.press("Enter")
        table = page.get_by_role("table", name="Findings in the store")
        expect(table).to_be_visible()
        assert visit.find_barriers() == []
        visit.picture("operate-checks")
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name="Repair what is certain")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_be_visible()
        page.keyboard.press("Enter")
        expect(page.get_by_text("1 repaired")).to_be_visible()
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert gateway.clew.data("fsck")["clean"]


def test_the_doctor_says_what_to_do(browser: Browser, gateway: Gateway) -> None:
    with visiting(browser, gateway) as visit:
        page = open_page(visit, "checks")
        press(page.get_by_role("button", name="Run the doctor"))
        table = page.get_by_role("table", name="Findings of the doctor")
        expect(table.get_by_text("openai-chat:fake-model answers")).to_be_visible()
        page.get_by_label("Send a test request").uncheck()
        press(page.get_by_role("button", name="Run the doctor"))
        expect(table.get_by_text("no test request was sent")).to_be_visible()
        assert visit.find_barriers() == []
        visit.picture("operate-doctor")
        assert CANARY not in page.content()


def test_a_backup_is_made_and_its_command_is_shown(browser: Browser, gateway: Gateway) -> None:
    with visiting(browser, gateway, permissions=["clipboard-write", "clipboard-read"]) as visit:
        page = open_page(visit, "backups")
        expect(page.get_by_text("No backups in this folder yet.")).to_be_visible()
        press(page.get_by_role("button", name="Back up now"))
        write(page.get_by_label("Name", exact=True), "../elsewhere")
        press(page.get_by_role("button", name="Back up", exact=True))
        expect(page.locator(".dialog [role=alert]")).to_contain_text("cannot be the name")
        write(page.get_by_label("Name", exact=True), "evening.backup")
        press(page.get_by_role("button", name="Back up", exact=True))
        row = page.locator("table.data tbody tr", has_text="evening.backup")
        expect(row).to_contain_text("restore")
        expect(page.get_by_text("Backed up 1 conversation with")).to_be_visible()
        press(row.get_by_role("button", name="Verify"))
        expect(page.get_by_text("evening.backup is whole: 1 conversation")).to_be_visible()
        press(row.get_by_role("button", name="Copy the command"))
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.endswith(f"restore {gateway.clew.home}/backups/evening.backup --replace")
        assert visit.find_barriers() == []
        visit.picture("operate-backups")


def test_the_log_grows_pauses_and_is_searched(browser: Browser, gateway: Gateway) -> None:
    with visiting(browser, gateway) as visit:
        page = open_page(visit, "log")
        log = page.get_by_role("list", name="Records of the log")
        expect(log.get_by_text("logged_in").first).to_be_visible()
        write(page.get_by_label("Search in what is shown"), "store_opened")
        expect(log.get_by_role("listitem")).to_have_count(1)
        visit.picture("operate-log")
        assert visit.find_barriers() == []
        write(page.get_by_label("Search in what is shown"), "")
        before = log.get_by_text("logged_in").count()
        press(page.get_by_role("button", name="Pause"))
        expect(page.get_by_text("Paused.")).to_be_visible()
        with visiting(browser, gateway):
            pass
        expect(log.get_by_text("logged_in")).to_have_count(before)
        press(page.get_by_role("button", name="Go on"))
        expect(log.get_by_text("logged_in")).to_have_count(before + 1)
        pick(page.get_by_label("Level"), "error")
        expect(page.get_by_text("Nothing was logged at this level.")).to_be_visible()
        assert visit.find_barriers() == []


def test_plugins_and_tools_are_shown(browser: Browser, gateway: Gateway) -> None:
    with visiting(browser, gateway) as visit:
        page = open_page(visit, "plugins")
        row = page.get_by_role("row", name="web_fetch")
        expect(row).to_contain_text("on")
        visit.picture("operate-plugins")
        press(row.get_by_role("link", name="[web]"))
        expect(setting(page, "web.search")).to_be_visible()
        page = open_page(visit, "tools")
        write(page.get_by_label("Search"), "pay")
        expect(page.get_by_role("row", name="pay")).to_contain_text("asks")
        expect(page.get_by_role("row")).to_have_count(2)
        write(page.get_by_label("Search"), "")
        visit.picture("operate-tools")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_page_fits_a_phone_and_keeps_nobody_out(
    browser: Browser, gateway: Gateway, scheme: str
) -> None:
    with visiting(browser, gateway, viewport=PHONE, color_scheme=scheme) as visit:
        for name in PAGES:
            page = open_page(visit, name)
            expect(page.locator(".operate-body > *").nth(1)).to_be_visible()
            wide = page.evaluate(
                "document.documentElement.scrollWidth > innerWidth || "
                "document.querySelector('.operate-body').scrollWidth > innerWidth"
            )
            assert not wide, name
            assert visit.find_barriers() == [], name
            visit.picture(f"phone-{name}-{scheme}")
        assert visit.complaints == []
    with visiting(browser, gateway, color_scheme=scheme) as visit:
        for name in PAGES:
            open_page(visit, name)
            assert visit.find_barriers() == [], name
