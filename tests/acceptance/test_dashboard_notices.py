"""Notices of the dashboard while nobody looks at it, and its page without a network."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from playwright.sync_api import expect

from clew.features.dashboard import push_crypto as crypto
from clew.testing import Calls, FakeProvider, ScriptedCall, Text
from tests.acceptance.browser import Gateway, opened_browser, visiting
from tests.acceptance.program import Clew
from tests.waiting import block_until

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from playwright.sync_api import Browser

    from clew.testing import ProviderRequest, Reply
    from tests.acceptance.browser import Visit

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]

AUTH = b"0123456789abcdef"


class PushService:
    """A push service with one browser, whose key it has."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.notices: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.status = 201
        self.url = ""

    def wait_for(self, count: int, kind: str = "answer") -> list[dict[str, Any]]:
        """Return the notices of a kind, once there are so many."""

        def found() -> list[dict[str, Any]]:
            return [one for one in self.notices if one["kind"] == kind]

        block_until(lambda: len(found()) >= count, seconds=60)
        return found()

    @contextmanager
    def running(self) -> Generator[str]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                service.headers.append({name.lower(): text for name, text in self.headers.items()})
                service.notices.append(json.loads(service.open(body)))
                self.send_response(service.status)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield self.url
        finally:
            server.shutdown()
            server.server_close()

    def open(self, body: bytes) -> bytes:
        """Read a message as the browser would."""
        salt, length = body[:16], body[20]
        theirs, sealed = body[21 : 21 + length], body[21 + length :]
        ours = crypto.public_bytes(self.key)
        peer = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), theirs)
        shared = self.key.exchange(ec.ECDH(), peer)
        secret = _derive(shared, AUTH, b"WebPush: info\0" + ours + theirs, 32)
        content_key = _derive(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
        nonce = _derive(secret, salt, b"Content-Encoding: nonce\0", 12)
        return AESGCM(content_key).decrypt(nonce, sealed, None)[:-1]

    @property
    def script(self) -> str:
        """A browser that subscribes here: no service of a browser's maker can be reached."""
        told = {
            "endpoint": f"{self.url}/send/1",
            "keys": {
                "p256dh": crypto.encode(crypto.public_bytes(self.key)),
                "auth": crypto.encode(AUTH),
            },
        }
        return f"""
            let given = null
            const made = {{
              toJSON: () => ({json.dumps(told)}),
              unsubscribe: async () => {{ given = null }},
            }}
            PushManager.prototype.getSubscription = async () => given
            PushManager.prototype.subscribe = async (options) => {{
              window.applicationKey = options.applicationServerKey
              given = made
              return given
            }}
        """


def _derive(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(secret)


def play(request: ProviderRequest) -> Reply:
    text = request.last_user_text or ""
    if request.messages[-1].role == "tool":
        return Text("it is paid")
    if text.startswith("pay"):
        return Calls([ScriptedCall("pay", {"amount": 5, "to": text[4:]})])
    return Text("done " * 20, chunks=20, delay=0.1)


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with opened_browser() as opened:
        yield opened


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
