"""The dashboard in a browser: talking, answering questions, losing the gateway, and attacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from clew.testing import Calls, FakeProvider, ScriptedCall, Text
from tests.acceptance.browser import PHONE, TOKEN, Gateway, visiting
from tests.acceptance.keyboard import press, write
from tests.acceptance.program import Clew

if TYPE_CHECKING:
    from collections.abc import Generator

    from playwright.sync_api import Browser, FilePayload

    from clew.testing import ProviderRequest, Reply

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]

EXPLAINED = """\
A turn is **stored** before it is answered:

```python
def begin(store, item: InboxItem) -> Turn:
    return store.write(consume, item)  # one commit
```

| step | stored |
|---|---|
| accept | the message |
| finish | the answer |
"""
EVIL = """\
<script>alert("script")</script><svg onload=alert("svg")>
<img src="https://evil.example/a.png" onerror=alert(1)>

[a](javascript:alert(1)) [b](JaVaScRiPt&colon;alert(2))
[c](data:text/html,<script>alert(3)</script>)
![tracked](https://evil.example/p.png) <https://good.example/> [good](https://good.example/page)

<div style="position:fixed;inset:0;background:url(https://evil.example/b.png)">over all</div>
<style>*{display:none}</style><form action="https://evil.example"><input name=token></form>

```html"><script>alert(4)</script>
<b onclick=alert(5)>code</b>
```
"""

FORMULAS = r"""
Energy is $E = mc^2$ and costs $5, not $10; `$x$` is code, \$y\$ is text.
A product: \(a_1*b_1*c\)

$$
\frac{a}{b} < \sqrt{c}
$$

- a list with \[ \sum_{i=1}^n i \]

$\href{javascript:alert(6)}{x}$ and $\frac{y}{$
"""


def play(request: ProviderRequest) -> Reply:
    text = request.last_user_text or ""
    if request.messages[-1].role == "tool":
        return Text(f"result: {request.messages[-1].text}", chunks=1)
    if text.startswith("pay"):
        payee = "Bob" if "Bob" in text else "Eve\u202e<script>"
        return Calls([ScriptedCall("pay", {"amount": 5, "to": payee})])
    if text.startswith("look"):
        return Calls([ScriptedCall("look", {"where": "<script>here</script>"})], thinking="hm")
    if text.startswith("slowly"):
        return Text("word " * 400, chunks=400, delay=0.05)
    if text.startswith("formulas"):
        return Text(FORMULAS, chunks=40)
    if text.startswith("explain"):
        return Text(EXPLAINED, chunks=20, thinking="Let me think.")
    return Text(EVIL if text.startswith("attack") else f"you said: {text}", chunks=4)


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


def test_a_person_logs_in_talks_and_finds_the_conversation_again(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        assert "login" not in page.url
        visit.say("explain how a turn is stored")
        expect(page.locator(".code-block .hl-keyword").first).to_be_visible()
        expect(page.locator(".markdown table")).to_be_visible()
        visit.expect_rest()
        page.wait_for_url("**/#/c/cnv_*")
        visit.picture("dashboard")
        visit.say("look around")
        visit.expect_answer("result:")
        press(page.get_by_role("button", name="look"))
        expect(page.locator(".tool-body")).to_contain_text("<script>here</script>")
        visit.expect_rest()
        page.reload()
        visit.expect_answer("result:")
        assert [text.strip() for text in visit.texts("user")] == [
            "explain how a turn is stored",
            "look around",
        ]
        page.keyboard.press("Control+k")
        page.keyboard.type("stored before")
        expect(page.locator(".hit").first).to_be_visible()
        write(page.locator("#search"), "no such words at all")
        expect(page.get_by_text("Nothing found")).to_be_visible()
        write(page.locator("#search"), "")
        row = page.locator(".row", has_text="explain how").first
        press(row.get_by_role("button", name="Actions for"))
        press(page.get_by_role("menuitem", name="Delete"))
        press(page.get_by_role("button", name="Undo"))
        expect(row).to_be_visible()
        assert {urlsplit(url).netloc for url in visit.requested if url[:4] != "data"} == {
            urlsplit(gateway.url).netloc
        }
        assert visit.complaints == []
        press(page.get_by_role("button", name="More", exact=True))
        press(page.get_by_role("menuitem", name="Sign out"))
        write(page.locator("#token"), "wrong")
        press(page.get_by_role("button", name="Sign in"))
        expect(page.get_by_role("alert")).to_contain_text("invalid or expired")
        assert visit.find_barriers() == []
        write(page.locator("#token"), TOKEN)
        page.keyboard.press("Enter")
        expect(page.locator("#composer")).to_be_visible()


def test_what_is_written_while_the_gateway_is_away_is_sent_once_and_nothing_is_missing(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        visit.say("slowly before the kill")
        expect(page.locator(".live")).to_contain_text("word word word")
        page.wait_for_url("**/#/c/cnv_*")
        name = page.url.rpartition("/")[2]
        gateway.kill()
        expect(page.get_by_text("The gateway cannot be reached")).to_be_visible()
        visit.say("written meanwhile")
        expect(page.locator("#composer")).to_have_value("")
        expect(page.get_by_text("Will be sent when connected")).to_be_visible()
        write(page.locator("#composer"), "a draft")
        gateway.start()
        expect(page.locator(".answer", has_text="you said: written meanwhile")).to_have_count(1)
        expect(page.locator("#composer")).to_have_value("a draft")
        write(page.locator("#composer"), "")
        visit.expect_rest()
        shown = [text.strip() for text in visit.texts("user")]
        assert shown == ["slowly before the kill", "written meanwhile"]
        said = gateway.clew.said(name)
        assert [text for role, text in said if role == "user"] == shown
        answers = [text.strip() for text in visit.texts("answer")]
        stored = [text.strip() for role, text in said if role == "assistant"]
        assert answers == stored


def test_texts_of_strangers_become_neither_code_nor_requests(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        visit.say("attack with a text")
        visit.expect_answer("over all")
        visit.expect_rest()
        visit.say("look <svg onload=alert(1)>")
        visit.expect_answer("result:")
        visit.expect_rest()
        press(page.get_by_role("button", name="look"))
        visit.say("/title <img src=x onerror=alert(1)>")
        expect(page.locator("h1")).to_have_text("<img src=x onerror=alert(1)>")
        for tag in ("script", "style", "img", "form", "iframe", "svg:not(.icon)"):
            assert page.locator(f".transcript {tag}").count() == 0, tag
        assert page.locator("#app .markdown [style], #app .markdown [onclick]").count() == 0
        links: list[str] = page.locator(".markdown a").evaluate_all(
            "all => all.map(one => one.href)"
        )
        assert {urlsplit(link).scheme for link in links} == {"https"}
        page.locator("input[type=file]").set_input_files(
            {"name": "<b>\u202etxt.exe", "mimeType": "text/plain", "buffer": b"hello"}
        )
        expect(page.locator(".composer .file")).to_contain_text("<b>")
        visit.say("with a file")
        visit.expect_answer("you said: hello")
        assert {urlsplit(url).netloc for url in visit.requested if url[:4] != "data"} == {
            urlsplit(gateway.url).netloc
        }
        assert visit.complaints == []


def test_a_message_that_is_too_large_with_its_files_is_refused_and_kept(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        large: list[FilePayload] = [
            {"name": name, "mimeType": "text/plain", "buffer": b"x" * size}
            for name, size in (("huge.txt", 9 << 20), ("one.txt", 7 << 20), ("other.txt", 7 << 20))
        ]
        page.locator("input[type=file]").set_input_files(large)
        expect(page.get_by_text("huge.txt is larger than 8 MB")).to_be_visible()
        expect(page.locator(".composer .file")).to_have_count(2)
        visit.say("see the files")
        refused = page.locator(".waiting", has_text="see the files")
        expect(refused).to_contain_text("larger than 16 MB with its files")
        press(refused.get_by_role("button", name="Discard"))
        visit.say("without them")
        visit.expect_answer("you said: without them")
        visit.expect_rest()


def test_formulas_are_drawn_and_money_is_not_one(browser: Browser, gateway: Gateway) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        visit.say("formulas, please")
        visit.expect_rest()
        answer = page.locator(".answer").last
        expect(answer.locator("math")).to_have_count(4)
        expect(answer.locator("mfrac")).to_be_visible()
        expect(answer.locator(".math.display")).to_have_count(2)
        codes = ["$x$", r"\href{javascript:alert(6)}{x}", r"\frac{y}{"]
        expect(answer.locator("code")).to_have_text(codes)
        text = answer.inner_text()
        assert "costs $5, not $10" in text
        assert "$y$ is text" in text
        assert answer.locator("em, a").count() == 0
        assert visit.find_barriers() == []
        visit.picture("dashboard-formulas")
        assert visit.complaints == []


def test_a_question_shows_all_arguments_and_is_answered_by_the_keyboard(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway, color_scheme="dark") as visit:
        page = visit.page
        expect(page.locator("#composer")).to_be_focused()
        page.keyboard.type("pay Bob for the tickets")
        page.keyboard.press("Enter")
        question = page.locator(".approval")
        expect(question).to_contain_text('"to": "Bob"')
        visit.picture("dashboard-question")
        assert visit.find_barriers() == []
        for _ in range(12):
            if page.evaluate("document.activeElement.textContent.trim()") == "Allow once":
                break
            page.keyboard.press("Shift+Tab")
        page.keyboard.press("Enter")
        visit.expect_answer("result:")
        visit.expect_rest()
        press(page.locator(".tool-head"))
        expect(page.locator(".tool-body")).to_contain_text("paid 5 to Bob")
        visit.say("pay Eve")
        expect(question).to_contain_text('"to": "Eve\\u202e<script>"')
        press(page.get_by_role("button", name="Say why"))
        write(page.get_by_label("Why not"), "too much")
        press(page.get_by_role("button", name="Deny"))
        expect(page.locator(".tool.denied")).to_be_visible()
        visit.expect_rest()
        press(page.locator(".tool-head").last)
        expect(page.locator(".tool-body").last).to_contain_text("too much")


def test_messages_are_queued_changed_and_taken_back_and_a_turn_is_stopped(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        visit.say("slowly, please")
        expect(page.locator(".live")).to_contain_text("word")
        visit.say("next")
        visit.say("not this one")
        waiting = page.locator(".waiting")
        expect(waiting.get_by_text("Queued")).to_have_count(2)
        press(waiting.last.get_by_role("button", name="Remove from the queue"))
        expect(waiting).to_have_count(1)
        press(waiting.get_by_role("button", name="Edit"))
        write(waiting.get_by_label("Waiting message"), "next, changed")
        press(waiting.get_by_role("button", name="Save"))
        expect(waiting).to_contain_text("next, changed")
        press(page.get_by_role("button", name="Stop"))
        visit.expect_answer("you said: next, changed")
        visit.expect_rest()
        assert [text.strip() for text in visit.texts("user")] == ["slowly, please", "next, changed"]
        small: FilePayload = {"name": "a.txt", "mimeType": "text/plain", "buffer": b"a"}
        page.locator("input[type=file]").set_input_files([small, {**small, "name": "b.txt"}])
        expect(page.locator(".attachments .file")).to_have_count(2)
        press(page.get_by_role("button", name="Remove a.txt"))
        expect(page.locator(".attachments .file")).to_have_text(["b.txt"])


def test_a_message_is_rewound_sent_again_and_branched_from(
    browser: Browser, gateway: Gateway
) -> None:
    with visiting(browser, gateway) as visit:
        page = visit.page
        visit.say("first")
        visit.expect_answer("you said: first")
        visit.say("next, changed")
        visit.expect_answer("you said: next, changed")
        visit.expect_rest()
        name = page.url.rpartition("/")[2]
        user = page.locator(".message.user", has_text="next, changed")
        visit.page.keyboard.type("written before")
        press(user.get_by_role("button", name="Edit and send again"))
        expect(page.locator("#composer")).to_have_value("next, changed\n\nwritten before")
        expect(page.locator("#composer")).to_be_focused()
        expect(page.get_by_text("1 message was rewound")).to_be_visible()
        write(page.locator("#composer"), "")
        visit.say("another way")
        visit.expect_answer("you said: another way")
        visit.expect_rest()
        answer = page.locator(".answer", has_text="another way")
        press(answer.get_by_role("button", name="Try again"))
        expect(page.get_by_text("were rewound")).to_be_visible()
        visit.expect_answer("you said: another way")
        visit.expect_rest()
        write(page.locator("#composer"), "/sta")
        expect(page.get_by_role("option")).to_have_count(1)
        page.keyboard.press("Enter")
        expect(page.get_by_role("option")).to_have_count(0)
        page.keyboard.press("Enter")
        expect(page.locator(".reply")).to_be_visible()
        answer = page.locator(".answer", has_text="another way").last
        press(answer.get_by_role("button", name="Branch from here"))
        expect(page.locator(".lineage")).to_be_visible()
        assert page.url.rpartition("/")[2] != name


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_everything_fits_and_keeps_nobody_out(
    browser: Browser, gateway: Gateway, scheme: str
) -> None:
    phone: dict[str, Any] = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
    with visiting(browser, gateway, color_scheme=scheme, device_scale_factor=2, **phone) as visit:
        page = visit.page
        page.locator("#composer").fill(f"explain it on a phone, {scheme}")
        page.get_by_role("button", name="Send message").click()
        expect(page.locator(".markdown table").first).to_be_visible()
        visit.expect_rest()
        assert page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]
        assert visit.find_barriers() == []
        visit.picture(f"dashboard-phone-{scheme}")
        page.get_by_role("button", name="Conversations").click()
        expect(page.locator(".sidebar.open")).to_be_visible()
        assert visit.find_barriers() == []
        page.keyboard.press("Escape")
        expect(page.locator(".sidebar.open")).to_have_count(0)
        assert visit.complaints == []
