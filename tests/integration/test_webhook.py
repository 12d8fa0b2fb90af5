"""A webhook through the server of the API: signed in, stored before it is answered, signed out."""

from __future__ import annotations

import json
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from pydantic_ai.messages import ModelResponse, ToolCallPart

from clew.api.app import create_app
from clew.api.builtin_operations import create_registry
from clew.config.secret import Secret
from clew.core.health import ChannelHealth, ChannelState
from clew.errors import SettingsError
from clew.features.webhooks.endpoint import make_endpoint
from clew.features.webhooks.settings import read_webhook_settings
from clew.features.webhooks.signing import (
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    decode_secret,
    sign_request,
)
from clew.gateway.channel import ChannelConfig
from clew.plugin.webhook_registry import (
    WebhookRegistry,
    WebhookRequest,
    WebhookResponse,
)
from clew.testing.telegram import FaultInjector
from clew.testing.webhook import FakeWebhook
from tests.channels.desk import Plain, echo, serving, table, until
from tests.integration.api_server import serving as serving_http
from tests.integration.api_server import settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage

    from tests.line.world import World


def pay_or_echo(messages: Sequence[ModelMessage]) -> ModelResponse:
    answer = echo(messages)
    if (answer.text or "").endswith("pay"):
        return ModelResponse(parts=[ToolCallPart("pay", {"what": "the bill"})])
    return answer


@dataclass(frozen=True, kw_only=True)
class WebhookDesk(Plain):
    world: World
    fake: FakeWebhook
    #: The URL to which events are posted.
    url: str

    def texts(self, chat: int = 42) -> list[str]:
        return self.fake.list_texts(str(chat))

    def waiting(self) -> int:
        return self.fake.pending_count

    async def post(self, body: bytes, headers: Mapping[str, str]) -> httpx2.Response:
        return await self.post_to(self.url, body, headers)

    async def post_to(self, url: str, body: bytes, headers: Mapping[str, str]) -> httpx2.Response:
        async with httpx2.AsyncClient(timeout=60) as client:
            return await client.post(url, content=body, headers=headers)


@asynccontextmanager
async def open_desk(
    url: str, home: Path, fake: FakeWebhook, **settings: object
) -> AsyncGenerator[WebhookDesk]:
    own = {"base_url": fake.answers_url, "secret": fake.secret, "allow": "42", **settings}
    async with AsyncExitStack() as stack:
        flags = table("webhook", own)
        world = await stack.enter_async_context(serving(url, home, flags, script=pay_or_echo))
        http = await stack.enter_async_context(serving_http(world.engine, settings_for(home)))
        await until(lambda: world.engine.channels["webhook"].state is ChannelState.CONNECTED)
        hook = f"{http}/hooks/webhook"
        fake.set_target(hook)
        yield WebhookDesk(world=world, fake=fake, url=hook)
        assert await world.check() == []


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[WebhookDesk]:
    with FakeWebhook() as fake:
        async with open_desk(f"sqlite:///{tmp_path}/clew.db", tmp_path, fake) as found:
            yield found


async def test_an_event_is_answered_in_its_chat_and_thread(desk: WebhookDesk) -> None:
    desk.fake.post_message("hello", thread="7")
    desk.fake.post_message("and here")
    texts = await desk.answered(2)
    assert sorted(texts) == ["You said: and here", "You said: hello"]
    threads = {one.text: one.thread for one in desk.fake.sent}
    assert threads == {"You said: hello": "7", "You said: and here": None}
    await desk.quiet()


async def test_an_edit_is_asked_again_and_a_button_lets_a_tool_run(desk: WebhookDesk) -> None:
    message = desk.fake.post_message("hallo")
    await desk.answered()
    desk.fake.edit_message(message, "hello")
    assert await desk.answered(2) == ["You said: hallo", "You said: hello"]
    desk.fake.delete_message(message)
    desk.fake.post_message("pay")
    await until(lambda: any(one.data.get("buttons") for one in desk.fake.sent))
    (asked,) = [one for one in desk.fake.sent if one.data.get("buttons")]
    desk.fake.press_button(asked.data["buttons"][0]["label"])
    await until(lambda: len(desk.fake.sent) >= 4)
    await until(lambda: desk.fake.button_answers)
    (answered,) = desk.fake.button_answers
    assert (answered["user"], answered["message"], answered["closed"]) == ("42", asked.id, True)
    assert answered["became"] == "Allowed: pay"
    await desk.quiet()


async def test_the_same_delivery_counts_once_however_often_it_comes(desk: WebhookDesk) -> None:
    body = json.dumps({"type": "message", "data": {"user": "42", "text": "once"}}).encode()
    for _ in range(3):
        # Signed anew at each attempt, as a sender does that got no answer.
        answer = await desk.post(body, desk.fake.sign_headers("evt_again", body))
        assert (answer.status_code, answer.json()) == (202, {"accepted": True})
    await desk.answered()
    await desk.quiet()
    assert desk.texts() == ["You said: once"]


BODY = json.dumps({"type": "message", "data": {"user": "42", "text": "hello"}}).encode()
DATA = {"user": "42", "text": "x"}


async def test_an_unsigned_request_is_refused_with_the_reason(desk: WebhookDesk) -> None:
    good = dict(desk.fake.sign_headers("evt_1", BODY))
    old = sign_request(
        decode_secret(desk.fake.secret), id_="evt_2", at=int(time.time()) - 301, body=BODY
    )
    other = sign_request(b"another secret, long", id_="evt_3", at=int(time.time()), body=BODY)
    later = {**good, TIMESTAMP_HEADER: str(int(good[TIMESTAMP_HEADER]) + 1)}
    bare = {name: value for name, value in good.items() if name != SIGNATURE_HEADER}
    refused = [
        (BODY, bare, 400, "missing_header"),
        (BODY, other, 401, "invalid_signature"),
        (BODY + b" ", good, 401, "invalid_signature"),
        (BODY, later, 401, "invalid_signature"),
        (BODY, {**good, SIGNATURE_HEADER: "v1,schlüssel"}, 401, "invalid_signature"),
        (BODY, old, 400, "stale_timestamp"),
    ]
    for body, headers, status, code in refused:
        raw = {name: value.encode("latin-1").decode("latin-1") for name, value in headers.items()}
        encoded = {name.encode(): value.encode("latin-1") for name, value in raw.items()}
        answer = await desk.post(body, encoded)  # pyright: ignore[reportArgumentType]
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
        assert desk.fake.secret not in answer.text
    # Of two signatures one is enough: the sender changes its secret.
    both = {**good, SIGNATURE_HEADER: f"{other[SIGNATURE_HEADER]} {good[SIGNATURE_HEADER]}"}
    assert (await desk.post(BODY, both)).status_code == 202
    await desk.answered()
    await desk.quiet()


async def test_an_unreadable_field_is_refused_and_named(desk: WebhookDesk) -> None:
    wrong: list[tuple[object, str]] = [
        ([], "not a JSON object"),
        ({}, "data must"),
        ({"data": {"text": "x"}}, "data.user"),
        ({"data": {"user": 42}}, "data.text"),
        ({"data": {**DATA, "kind": "room"}}, "data.kind"),
        ({"data": {**DATA, "chat": ""}}, "data.chat"),
        ({"data": {**DATA, "addressed": 1}}, "data.addressed"),
        ({"data": {**DATA, "name": 1}}, "data.name"),
        ({"type": "poke", "data": DATA}, "type must"),
        ({"type": "message.edited", "data": DATA}, "data.message"),
        ({"timestamp": "noon", "data": DATA}, "timestamp"),
    ]
    bodies = [(json.dumps(told).encode(), says) for told, says in wrong]
    for body, says in [*bodies, (b"{", "not valid"), (b"[" * 100_000, "not valid")]:
        answer = await desk.post(body, desk.fake.sign_headers("evt_1", body))
        assert answer.status_code == 400
        assert says in answer.json()["error"]["message"]


async def test_an_unknown_webhook_is_not_found_and_one_on_standby_is_not_ready(
    tmp_path: Path, desk: WebhookDesk
) -> None:
    headers = desk.fake.sign_headers("evt_1", BODY)
    other = desk.url.replace("/webhook", "/other")
    answer = await desk.post_to(other, BODY, headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    own = {"base_url": desk.fake.answers_url, "secret": desk.fake.secret, "allow": "42"}
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(
            serving(f"sqlite:///{tmp_path}/clew.db", tmp_path, table("webhook", own), script=echo)
        )
        url = await stack.enter_async_context(serving_http(world.engine, settings_for(tmp_path)))
        await until(lambda: world.engine.channels["webhook"].state is ChannelState.STANDBY)
        answer = await desk.post_to(f"{url}/hooks/webhook", BODY, headers)
        assert answer.status_code == 503
        assert answer.headers["Retry-After"]


class Connecting(dict[str, ChannelHealth]):
    """Channels of which one is connecting, until a request has looked at it."""

    def __init__(self, connect: Callable[[], None]) -> None:
        super().__init__(late=ChannelHealth(state=ChannelState.CONNECTING, since=datetime.now(UTC)))
        self._connect = connect

    def get(self, name: str, default: object = None) -> Any:
        self._connect()
        return super().get(name, default)


async def test_a_request_waits_for_a_channel_that_is_connecting(
    tmp_path: Path, desk: WebhookDesk
) -> None:
    async def accept(request: WebhookRequest) -> WebhookResponse:
        return WebhookResponse(status=202)

    webhooks, engine = WebhookRegistry(), desk.world.engine
    webhooks.declare_webhook("late")
    engine.channels = Connecting(lambda: webhooks.register_handler("late", accept))
    registry = create_registry()
    registry.add(make_endpoint(webhooks))
    app = create_app(engine, settings_for(tmp_path), operations=registry.build())
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
        assert (await http.post("/hooks/late", content=BODY)).status_code == 202


async def test_an_event_that_was_not_stored_is_answered_once_after_a_restart(
    store_url: str, tmp_path: Path
) -> None:
    with FakeWebhook() as fake:
        fake.post_message("hello")
        for _ in range(2):
            async with open_desk(store_url, tmp_path, fake) as desk:
                await desk.answered()
                await desk.quiet()
        assert fake.list_texts() == ["You said: hello"]


async def test_a_bad_day_loses_nothing_and_repeats_nothing(store_url: str, tmp_path: Path) -> None:
    """Cut connections, lost answers, waits and repeated events: the id of a message says all."""
    faults = FaultInjector(cut=0.1, lost=0.1, throttled=0.05, broken=0.1, duplicated=0.2, seed=1)
    with FakeWebhook(faults=faults) as fake:
        for number in range(3):
            for user in range(1, 6):
                fake.post_message(f"message {number} of {user}", user=str(user))
        async with open_desk(store_url, tmp_path, fake, allow="*", double_text="queue") as desk:
            await desk.quiet()
            assert await desk.world.engine.deliveries.list_deliveries() == []
        assert fake.intrusions == 0
        for user in range(1, 6):
            wanted = [f"You said: message {number} of {user}" for number in range(3)]
            assert fake.list_texts(str(user)) == wanted


async def test_a_permanently_refused_delivery_is_a_dead_letter(desk: WebhookDesk) -> None:
    desk.fake.refuse_chat("42")
    desk.fake.post_message("hello")

    async def dead() -> bool:
        return len(await desk.world.engine.deliveries.list_deliveries()) == 1

    await desk.world.until(dead)
    (letter,) = await desk.world.engine.deliveries.list_deliveries()
    assert "refused it: 410" in str(letter)


OPTIONS = {"secret": Secret.from_text("s" * 16)}


@pytest.mark.parametrize(
    ("base_url", "options", "says"),
    [
        (None, OPTIONS, "base_url is missing"),
        ("http://x", {}, "secret is missing"),
        ("http://x", {"secret": Secret.from_text("short")}, "too short"),
        ("http://x", {"secret": Secret.from_text("whsec_%")}, "no Base64"),
        ("http://x", {**OPTIONS, "longest": "ten"}, "longest must be"),
        ("http://x", {**OPTIONS, "color": "red"}, "no setting color"),
    ],
)
def test_settings_that_cannot_be_used_say_which_and_why(
    base_url: str | None, options: Mapping[str, object], says: str
) -> None:
    config = ChannelConfig(name="mine", token=None, base_url=base_url, options=options)
    with pytest.raises(SettingsError, match=rf"channels\.mine.*{says}"):
        read_webhook_settings(config)
