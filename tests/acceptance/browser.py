"""The dashboard as people use it: a real gateway, and the system's Chromium."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from playwright.sync_api import expect, sync_playwright

from tests import javascript, postgres
from tests.postgres import free_port
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Generator

    from playwright.sync_api import Browser, Page, StorageState

    from tests.acceptance.program import Clew, Process

TOKEN: Final = "s3cret-of-the-dashboard"
#: Tools of which one asks.
TOOLS: Final = '''\
from pydantic_ai import Tool


def pay(amount: int, to: str) -> str:
    """Pay so much."""
    return f"paid {amount} to {to}"


def look(where: str) -> str:
    """Look somewhere."""
    return f"<img src=x onerror=alert(1)> <svg onload=alert(2)> {where} " + "x" * 50


tools = [Tool(pay, requires_approval=True), Tool(look, metadata={"effect": "pure"})]
'''
_FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
)
#: Where pictures for the documentation are put, if this names a folder.
PICTURES: Final = os.environ.get("CLEW_PICTURES")
DESKTOP: Final = {"width": 1280, "height": 800}
PHONE: Final = {"width": 360, "height": 740}

expect.set_options(timeout=PATIENCE * 1000)


@contextmanager
def opened_browser() -> Generator[Browser]:
    """The system's Chromium, without a profile."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    assert program, "install chromium: apt-get install --no-install-recommends chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=_FLAGS)
        yield browser
        browser.close()


class Gateway:
    """A gateway on one port, which can be killed and started again."""

    def __init__(self, clew: Clew) -> None:
        self.port = free_port()
        self._stack = ExitStack()
        self.clew = clew.with_env(
            {
                **self._choose_store(clew),
                "CLEW_API__PORT": str(self.port),
                "CLEW_API__TOKEN": TOKEN,
                "CLEW_TOOLS__MODULES": '["handy"]',
            }
        )
        self._process: Process | None = None

    def _choose_store(self, clew: Clew) -> dict[str, str]:
        """Return the settings of the store: `make soak browser` tries each database."""
        if os.environ.get("CLEW_BROWSER_DATABASE") != "postgres" or "CLEW_STORE__URL" in clew.env:
            return {}
        server = self._stack.enter_context(postgres.home())
        return {"CLEW_STORE__URL": self._stack.enter_context(postgres.database(server.url()))}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        plugins = self.clew.home / "plugins"
        plugins.mkdir(parents=True, exist_ok=True)
        (plugins / "handy.py").write_text(TOOLS, encoding="utf-8")
        log = self._stack.enter_context((self.clew.home / "log").open("a"))
        self._process = self._stack.enter_context(self.clew.started("serve", errors=log))
        assert self._process.stdout is not None
        assert self._process.stdout.readline().startswith("ready ")

    def kill(self) -> None:
        """End it at once."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self._stack.close()


@dataclass
class Visit:
    """A page that is open, and all that it asked for and complained about."""

    page: Page
    gateway: Gateway
    requested: list[str] = field(default_factory=list[str])
    complaints: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.page.on("request", lambda request: self.requested.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on(
            "console",
            lambda told: (
                self.complaints.append(told.text)
                if "Content Security Policy" in told.text or "TrustedHTML" in told.text
                else None
            ),
        )

    def say(self, text: str) -> None:
        """Write a message, and send it by the key."""
        self.page.locator("#composer").fill(text)
        self.page.locator("#composer").press("Enter")

    def expect_answer(self, text: str) -> None:
        expect(self.page.locator(".answer", has_text=text).last).to_be_visible()

    def expect_rest(self) -> None:
        """Wait until no turn runs and nothing waits."""
        expect(self.page.get_by_role("button", name="Send message")).to_be_visible()
        expect(self.page.locator(".waiting")).to_have_count(0)

    def texts(self, kind: str) -> list[str]:
        return self.page.locator(f".message.{kind}").all_inner_texts()

    def picture(self, name: str) -> None:
        """Take a picture for the documentation."""
        if PICTURES:
            self.page.screenshot(path=Path(PICTURES) / f"{name}.png")

    def find_barriers(self) -> list[str]:
        """Return what axe finds that keeps people out."""
        # Scripts of the page itself are limited by its policy; this is one of ours.
        self.page.evaluate(javascript.read_module("axe-core/axe.min.js"))
        told: Any = json.loads(self.page.evaluate("axe.run().then(JSON.stringify)"))
        return [
            f"{one['id']}: {node['html'][:200]} {node.get('failureSummary', '')}"
            for one in told["violations"]
            for node in one["nodes"]
        ]


@contextmanager
def visiting(
    browser: Browser, gateway: Gateway, *, login: StorageState | None = None, **options: Any
) -> Generator[Visit]:
    """The dashboard, opened by the link of ``clew dashboard`` or with a login."""
    chosen: dict[str, Any] = {"viewport": DESKTOP, "reduced_motion": "reduce", **options}
    context = browser.new_context(**chosen, storage_state=login)
    context.set_default_timeout(PATIENCE * 1000)
    try:
        visit = Visit(context.new_page(), gateway)
        link = gateway.url if login else gateway.clew.ok("dashboard", "--print").strip()
        visit.page.goto(link)
        expect(visit.page.locator("#composer")).to_be_visible()
        yield visit
    finally:
        context.close()
