"""Twenty everyday tasks in the dashboard, as people do them, with the clicks that each takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest
from playwright.sync_api import expect

from clew.testing import Calls, FakeProvider, ScriptedCall, Text
from tests.acceptance.browser import Gateway, visiting
from tests.acceptance.program import Clew

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from clew.testing import ProviderRequest, Reply
    from tests.acceptance.browser import Visit

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]

Task = Callable[["Visit"], None]

_COUNTER: Final = """
addEventListener("click", (event) => {
  if (event.detail > 0) sessionStorage.clicks = 1 + Number(sessionStorage.clicks ?? 0)
}, true)
"""


def play(request: ProviderRequest) -> Reply:
    text = request.last_user_text or ""
    if request.messages[-1].role == "tool":
        return Text("it is done")
    if text.startswith("pay"):
        return Calls([ScriptedCall("pay", {"amount": 5, "to": text[4:]})])
    if text.startswith("slowly"):
        return Text("word " * 200, chunks=200, delay=0.05)
    return Text(f"you said: {text}")


def menu(page: Page, name: str) -> None:
    page.get_by_role("button", name="Actions", exact=True).click()
    page.get_by_role("menuitem", name=name, exact=True).click()


def operate(page: Page, name: str) -> None:
    page.get_by_role("link", name="Operate").click()
    page.get_by_role("link", name=name, exact=True).click()


def talk(visit: Visit) -> None:
    visit.say("remember the roses")
    visit.expect_answer("you said: remember the roses")
    visit.expect_rest()


def rename(visit: Visit) -> None:
    menu(visit.page, "Rename")
    visit.page.get_by_label("Title").fill("Roses")
    visit.page.keyboard.press("Enter")
    expect(visit.page.locator("h1")).to_have_text("Roses")


def find(visit: Visit) -> None:
    visit.page.keyboard.press("Control+k")
    visit.page.keyboard.type("the roses")
    visit.page.locator(".hit a").first.click()
    expect(visit.page.locator("h1")).to_have_text("Roses")
    visit.page.locator("#search").fill("")


def correct(visit: Visit) -> None:
    said = visit.page.locator(".message.user").last
    said.hover()
    said.get_by_role("button", name="Edit and send again").click()
    expect(visit.page.locator("#composer")).to_have_value("remember the roses")
    visit.say("remember the tulips")
    visit.expect_answer("you said: remember the tulips")
    visit.expect_rest()


def try_again(visit: Visit) -> None:
    answer = visit.page.locator(".answer").last
    answer.hover()
    answer.get_by_role("button", name="Try again").click()
    expect(visit.page.get_by_text("rewound").last).to_be_visible()
    visit.expect_rest()


def branch(visit: Visit) -> None:
    before = visit.page.url
    answer = visit.page.locator(".answer").last
    answer.hover()
    answer.get_by_role("button", name="Branch from here").click()
    expect(visit.page).not_to_have_url(before)


def stop(visit: Visit) -> None:
    visit.say("slowly")
    expect(visit.page.locator(".live")).to_contain_text("word")
    visit.page.keyboard.press("Escape")
    visit.expect_rest()


def queue(visit: Visit) -> None:
    visit.say("slowly")
    expect(visit.page.locator(".live")).to_contain_text("word")
    visit.say("and water them")
    waiting = visit.page.locator(".waiting")
    waiting.get_by_role("button", name="Edit").click()
    waiting.get_by_label("Waiting message").fill("and water them twice")
    waiting.get_by_role("button", name="Save").click()
    visit.page.get_by_role("button", name="Stop").click()
    visit.expect_answer("you said: and water them twice")
    visit.expect_rest()


def attach(visit: Visit) -> None:
    file = {"name": "note.txt", "mimeType": "text/plain", "buffer": b"three roses"}
    visit.page.locator("input[type=file]").set_input_files([file])  # pyright: ignore[reportArgumentType]
    visit.say("what does it say")
    visit.expect_answer("you said:")
    visit.expect_rest()


def allow(visit: Visit) -> None:
    visit.say("pay Bob")
    visit.page.get_by_role("button", name="Allow once").click()
    visit.expect_answer("it is done")
    visit.expect_rest()


def deny(visit: Visit) -> None:
    visit.say("pay Eve")
    visit.page.get_by_role("button", name="Say why").click()
    visit.page.get_by_label("Why not").fill("she is a stranger")
    visit.page.get_by_role("button", name="Deny").click()
    visit.expect_rest()


def keep_and_revoke(visit: Visit) -> None:
    visit.say("pay Bob")
    visit.page.get_by_role("button", name="always").click()
    visit.expect_rest()
    operate(visit.page, "Allowed calls")
    visit.page.get_by_role("button", name="Revoke").click()
    expect(visit.page.get_by_text("Nothing is allowed beforehand")).to_be_visible()
    visit.page.get_by_role("link", name="Chat").click()


def delete_and_undo(visit: Visit) -> None:
    talk(visit)
    menu(visit.page, "Delete")
    visit.page.get_by_role("button", name="Undo").click()
    row = visit.page.locator(".row", has_text="remember the roses").first
    row.get_by_role("link").click()
    visit.expect_answer("you said: remember the roses")


def save(visit: Visit) -> None:
    with visit.page.expect_download() as saved:
        menu(visit.page, "Save as Markdown")
    assert "remember the roses" in saved.value.path().read_text(encoding="utf-8")


def summarise(visit: Visit) -> None:
    menu(visit.page, "Summarise older messages")
    expect(visit.page.get_by_text("There is nothing to summarise yet")).to_be_visible()


def schedule(visit: Visit) -> None:
    operate(visit.page, "Jobs")
    visit.page.get_by_role("button", name="Add a job").click()
    visit.page.get_by_label("What the agent is to do").fill("water the roses")
    visit.page.get_by_label("Or every").fill("1d")
    visit.page.keyboard.press("Enter")
    expect(visit.page.locator("table.data")).to_contain_text("water the roses")
    visit.page.get_by_role("link", name="Chat").click()


def remember_and_forget(visit: Visit) -> None:
    operate(visit.page, "Memory")
    visit.page.get_by_role("button", name="Remember").click()
    visit.page.get_by_label("What to remember").fill("Ada grows roses")
    visit.page.locator(".dialog").get_by_role("button", name="Remember").click()
    row = visit.page.locator("table.data tbody tr", has_text="Ada grows roses")
    row.get_by_role("button").click()
    visit.page.get_by_role("menuitem", name="Forget").click()
    visit.page.get_by_role("button", name="Forget", exact=True).click()
    expect(row).to_have_count(0)
    visit.page.get_by_role("link", name="Chat").click()


def see_cost(visit: Visit) -> None:
    operate(visit.page, "Tokens and cost")
    expect(visit.page.locator("table.data").first).to_be_visible()
    visit.page.get_by_role("link", name="Chat").click()


def back_up(visit: Visit) -> None:
    operate(visit.page, "Backups")
    visit.page.get_by_role("button", name="Back up now").click()
    visit.page.get_by_role("button", name="Back up", exact=True).click()
    expect(visit.page.locator("table.data tbody tr")).to_have_count(1)
    visit.page.get_by_role("link", name="Chat").click()


def sign_out(visit: Visit) -> None:
    visit.page.get_by_role("button", name="More", exact=True).click()
    visit.page.get_by_role("menuitem", name="Sign out").click()
    expect(visit.page.locator("#token")).to_be_visible()


@dataclass(frozen=True)
class Everyday:
    what: str
    run: Task
    #: Clicks of the mouse; what is typed is not counted.
    clicks: int


TASKS: Final = (
    Everyday("ask something", talk, 0),
    Everyday("give the conversation a name", rename, 2),
    Everyday("find what was said", find, 1),
    Everyday("correct what I said", correct, 1),
    Everyday("have it try again", try_again, 1),
    Everyday("go on in another direction", branch, 1),
    Everyday("stop an answer", stop, 0),
    Everyday("write on while it works, and change that", queue, 3),
    Everyday("show it a file", attach, 0),
    Everyday("allow a call", allow, 1),
    Everyday("deny a call and say why", deny, 2),
    Everyday("allow such calls, and take that back", keep_and_revoke, 5),
    Everyday("delete a conversation, and take that back", delete_and_undo, 4),
    Everyday("keep a conversation as a file", save, 2),
    Everyday("see what a summary would leave out", summarise, 2),
    Everyday("have it do something every day", schedule, 4),
    Everyday("have it remember and forget", remember_and_forget, 8),
    Everyday("see what it costs", see_cost, 3),
    Everyday("back everything up", back_up, 5),
    Everyday("leave", sign_out, 2),
)


@pytest.fixture
def gateway(tmp_path: Path) -> Generator[Gateway]:
    with FakeProvider(play) as provider:
        made = Gateway(Clew(tmp_path / "home").asking(provider))
        made.start()
        try:
            yield made
        finally:
            made.close()


def test_twenty_everyday_tasks_take_few_clicks(browser: Browser, gateway: Gateway) -> None:
    with visiting(browser, gateway) as visit:
        visit.page.add_init_script(_COUNTER)
        visit.page.reload()
        expect(visit.page.locator("#composer")).to_be_visible()
        taken: dict[str, int] = {}
        for task in TASKS:
            visit.page.evaluate("sessionStorage.clicks = 0")
            task.run(visit)
            taken[task.what] = int(visit.page.evaluate("sessionStorage.clicks"))
        assert taken == {task.what: task.clicks for task in TASKS}
        assert len(TASKS) == 20
        assert visit.complaints == []
