"""WhatsApp: signed webhooks in, the 24-hour window, and receipts that settle what is unknown."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from pydantic_ai.messages import ModelResponse, ToolCallPart

from clew.core.channel_events import OutboundMessage
from clew.core.delivery import DeliveryState
from clew.core.health import ChannelState
from clew.errors import NotDelivered, NotSent, SettingsError
from clew.features.whatsapp import codec, messages, window
from clew.features.whatsapp.settings import read_whatsapp_settings
from clew.gateway.channel import ChannelConfig
from clew.store.transactions import deliveries
from clew.testing.whatsapp import FakeWhatsApp
from tests.channels.desk import Plain, echo, serving, table, until
from tests.integration.api_server import serving as serving_http
from tests.integration.api_server import settings_for
from tests.integration.test_whatsapp_contract import open_whatsapp

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage

    from tests.line.world import World


def pay_or_echo(messages_: Sequence[ModelMessage]) -> ModelResponse:
    answer = echo(messages_)
    if (answer.text or "").endswith("pay"):
        return ModelResponse(parts=[ToolCallPart("pay", {"what": "the bill"})])
    return answer


@dataclass(frozen=True, kw_only=True)
class WhatsAppDesk(Plain):
    world: World
    fake: FakeWhatsApp
    url: str

    def texts(self, chat: int = 42) -> list[str]:
        return self.fake.list_texts(str(chat))

    def waiting(self) -> int:
        return self.fake.pending_count

    async def delivery_errors(self) -> list[str]:
        """Return why deliveries are not delivered."""
        left = await self.world.store.read(
            deliveries.list_dead_letters, tuple(DeliveryState), limit=10
        )
        return [str(one.error) for one, _ in left]


@asynccontextmanager
async def open_desk(
    url: str, home: Path, fake: FakeWhatsApp, **settings: object
) -> AsyncGenerator[WhatsAppDesk]:
    own = {"base_url": fake.url, **fake.settings, "allow": "42", **settings}
    async with AsyncExitStack() as stack:
        flags = table("whatsapp", own)
        world = await stack.enter_async_context(serving(url, home, flags, script=pay_or_echo))
        http = await stack.enter_async_context(serving_http(world.engine, settings_for(home)))
        await until(lambda: world.engine.channels["whatsapp"].state is ChannelState.CONNECTED)
        hook = f"{http}/whatsapp/whatsapp"
        fake.set_target(hook)
        yield WhatsAppDesk(world=world, fake=fake, url=hook)
        assert await world.check() == []


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[WhatsAppDesk]:
    with FakeWhatsApp() as fake:
        async with open_desk(f"sqlite:///{tmp_path}/clew.db", tmp_path, fake) as found:
            yield found


async def test_a_message_is_answered_once_however_often_it_is_delivered(
    desk: WhatsAppDesk,
) -> None:
    """One webhook may hold several entries and changes, and each is delivered until accepted."""
    desk.fake.post_message("hello")
    assert await desk.answered() == ["You said: hello"]
    given = [
        {
            "from": "42",
            "id": f"wamid.{n % 2}",
            "timestamp": "1",
            "type": "text",
            "text": {"body": n},
        }
        for n in (2, 3, 2)
    ]
    changes = [
        {"field": "messages", "value": {"messages": [{**one, "text": {"body": str(one["id"])}}]}}
        for one in given
    ]
    entries = [{"id": "1", "changes": changes[:2]}, {"id": "1", "changes": changes[2:]}]
    for _ in range(2):
        desk.fake.post_payload(entries)
    await until(lambda: desk.texts()[-1].count("wamid") + len(desk.texts()) >= 3)
    await desk.quiet()
    told = " ".join(desk.texts())
    assert (told.count("wamid.0"), told.count("wamid.1")) == (1, 1)
    assert set(desk.fake.statuses) == {200}


async def test_only_meta_is_heard_and_the_handshake_needs_the_verify_token(
    desk: WhatsAppDesk,
) -> None:
    body = json.dumps({"entry": []}).encode()
    signed = desk.fake.sign_headers("", body)
    async with httpx2.AsyncClient(timeout=60) as client:

        async def post(headers: Any, content: bytes = body, to: str = desk.url) -> int:
            return (await client.post(to, content=content, headers=headers)).status_code

        assert await post(signed) == 200
        assert await post(signed, body + b" ") == 401
        assert await post({}) == 401
        broken = b"[" * 100_000
        assert await post(desk.fake.sign_headers("", broken), broken) == 400
        assert await post(signed, to=f"{desk.url}2") == 404
        asked = {"hub.mode": "subscribe", "hub.challenge": "1158201444"}
        right = await client.get(desk.url, params={**asked, "hub.verify_token": "verify"})
        wrong = await client.get(desk.url, params={**asked, "hub.verify_token": "verif"})
    assert (right.status_code, right.text) == (200, "1158201444")
    assert right.headers["content-type"].startswith("text/plain")
    assert wrong.status_code == 403
    assert "1158201444" not in wrong.text


async def test_a_person_answers_a_question_with_a_button_or_a_row_of_a_list(
    desk: WhatsAppDesk,
) -> None:
    desk.fake.post_message("pay")
    await until(lambda: any(one.kind == "interactive" for one in desk.fake.sent))
    desk.fake.press_button("Allow")
    await until(lambda: any("Allowed: pay" in text for text in desk.texts()))
    await desk.quiet()


async def test_a_file_is_read_with_its_message(desk: WhatsAppDesk) -> None:
    file = desk.fake.attach_file("roses.txt", b"red roses", "text/plain")
    caption = {**file, "caption": "What is this?"}
    desk.fake.post({"type": "document", "document": caption})
    (answer,) = await desk.answered()
    assert "roses.txt" in answer
    assert "What is this?" in answer
    assert "red roses" in str(desk.world.model.sent[-1])


async def test_an_answer_after_24_hours_waits_for_the_person_whom_the_template_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window, "LOOK_AGAIN", 0.2)
    with FakeWhatsApp() as fake:
        url = f"sqlite:///{tmp_path}/clew.db"
        async with open_desk(url, tmp_path, fake, template="news_for_you") as desk:
            fake.add_template("news_for_you")
            fake.post_message("hello")
            fake.close_window("42")
            await until(desk.texts)
            assert desk.texts() == ["template news_for_you (en_US)"]
            await until_told(desk, "it waits until the person writes")
            fake.post({"type": "button", "button": {"text": "Show me", "payload": "x"}})
            assert (await desk.answered(3))[1:] == ["You said: hello", "You said: Show me"]
            await desk.quiet()


async def until_told(desk: WhatsAppDesk, words: str) -> None:
    async def told() -> bool:
        return any(words in error for error in await desk.delivery_errors())

    await desk.world.until(told)


async def test_without_a_template_a_late_answer_is_a_dead_letter_that_says_why(
    desk: WhatsAppDesk,
) -> None:
    desk.fake.post_message("hello")
    desk.fake.close_window("42")
    await until_told(desk, "more than 24 hours after the person last wrote")


async def test_the_typing_indicator_marks_the_last_message_as_read() -> None:
    async with open_whatsapp() as there, there.create_channel() as channel:
        await channel.show_typing(there.route)
        message = there.fake.post_message("hello")
        async for batch in channel.receive():
            if batch:
                break
        await channel.show_typing(there.route)
    (mark,) = there.fake.read_marks
    assert (mark["message_id"], mark["typing_indicator"]) == (message, {"type": "text"})


async def test_a_receipt_settles_an_outcome_that_was_lost() -> None:
    async with open_whatsapp() as there, there.create_channel() as channel:
        (chunk,) = channel.render(OutboundMessage(text="Hello"))
        there.fake.fail_next_call(lost=True)
        with pytest.raises(Exception, match="failed"):
            await channel.send(there.route, chunk, key="d:0")
        (shown,) = there.fake.sent
        assert await channel.find_message(there.route, chunk, key="d:0") == shown.id
        async with there.create_channel() as later:
            assert await later.find_message(there.route, chunk, key="d:0") == shown.id


async def test_a_failure_that_is_told_later_is_the_outcome_of_the_call() -> None:
    async with open_whatsapp() as there, there.create_channel() as channel:
        (chunk,) = channel.render(OutboundMessage(text="Hello"))
        there.fake.close_window("42", at_once=False)
        with pytest.raises(NotDelivered, match="24 hours"):
            await channel.send(there.route, chunk, key="d:0")


ME = codec.WhatsAppIdentity(phone_number_id="1", number="15550783881")
FORWARDED = {"forwarded": True}
REPLY = {"from": "15550783881", "id": "wamid.1"}


@pytest.mark.parametrize(
    ("message", "read"),
    [
        ({"type": "text", "text": {"body": "hi"}}, "hi"),
        ({"type": "text", "text": {"body": "/new"}, "context": FORWARDED}, "\n> /new"),
        ({"type": "text", "text": {"body": "hi"}, "context": REPLY}, "hi\n\nIn reply to you."),
        ({"type": "audio", "audio": {"id": "7", "voice": True}}, "[voice message]"),
        ({"type": "sticker", "sticker": {"id": "7", "animated": True}}, "[animated sticker]"),
        ({"type": "image", "image": {"id": "7", "caption": "me"}}, "me"),
        ({"type": "image", "image": {}}, "[unsupported: image without content]"),
        ({"type": "location", "location": {"latitude": 1.5, "longitude": 2}}, "[location 1.5, 2]"),
        (
            {"type": "location", "location": {"latitude": 1, "longitude": 2, "name": "Bar"}},
            "[venue Bar, 1, 2]",
        ),
        (
            {
                "type": "contacts",
                "contacts": [{"name": {"formatted_name": "Ann"}, "phones": [{"phone": "+49"}]}],
            },
            "[contact Ann, +49]",
        ),
        ({"type": "button", "button": {"text": "Show me", "payload": "x"}}, "Show me"),
        ({"type": "reaction", "reaction": {"message_id": "1", "emoji": "👍"}}, "[reaction 👍]"),
        (
            {
                "type": "order",
                "order": {"text": "soon", "product_items": [{"product_retailer_id": "tea"}]},
            },
            "soon\n[order: of tea at]",
        ),
        (
            {
                "type": "interactive",
                "interactive": {"type": "nfm_reply", "nfm_reply": {"name": "flow", "body": "Sent"}},
            },
            "[form: flow — Sent]",
        ),
        (
            {"type": "unsupported", "errors": [{"code": 131051, "title": "Message type unknown"}]},
            "[unsupported: Message type unknown]",
        ),
        ({"type": "hologram"}, "[unsupported: hologram]"),
        (
            {"type": "text", "text": {"body": "hi"}, "referral": {"headline": "Tea"}},
            "hi\n\nFrom an advertisement:\n> Tea",
        ),
    ],
)
def test_every_kind_of_message_is_read_as_text_or_names_what_it_is(
    message: dict[str, Any], read: str
) -> None:
    whole = {"from": "42", "id": "wamid.2", "timestamp": "1793183520", **message}
    value = {"messages": [whole], "metadata": {"phone_number_id": "1"}}
    found = codec.parse_webhook(
        {"entry": [{"changes": [{"field": "messages", "value": value}]}]}, ME
    )
    (event,) = found.events
    assert isinstance(event, codec.MessageReceived)
    assert event.agent_text.endswith(read)
    assert event.may_command or event.files


@pytest.mark.parametrize(
    "message",
    [
        {"type": "system", "system": {"type": "customer_identity_changed"}},
        {"type": "reaction", "reaction": {"message_id": "1"}},
        {"type": "request_welcome"},
        {"type": "text", "text": {"body": "x"}, "timestamp": "soon"},
        {"type": "text", "from": ""},
    ],
)
def test_what_nobody_said_to_the_agent_is_passed_over(message: dict[str, Any]) -> None:
    whole = {"from": "42", "id": "wamid.2", "timestamp": "1", **message}
    value = {"messages": [whole]}
    found = codec.parse_webhook(
        {"entry": [{"changes": [{"field": "messages", "value": value}]}]}, ME
    )
    assert (found.events, len(found.ignored)) == ((), 1)


def test_edits_deletions_groups_and_new_numbers_are_told_as_such() -> None:
    def parse(message: dict[str, Any]) -> codec.ChannelEvent:
        whole = {"from": "42", "id": "wamid.2", "timestamp": "1", **message}
        found = codec.parse_message(whole, {}, ME)
        assert not isinstance(found, codec.IgnoredEvent)
        return found

    inner = {"type": "text", "text": {"body": "new"}}
    edit = {"original_message_id": "wamid.1", "message": inner}
    edited = parse({"type": "edit", "edit": edit})
    assert isinstance(edited, codec.MessageEdited)
    assert (edited.original, edited.text) == ("wamid.1", "new")
    revoked = parse({"type": "revoke", "revoke": {"original_message_id": "wamid.1"}})
    assert isinstance(revoked, codec.MessageDeleted)
    assert revoked.original == "wamid.1"
    moved = parse({"type": "system", "system": {"type": "user_changed_number", "wa_id": "43"}})
    assert isinstance(moved, codec.ChatMigrated)
    assert (moved.route.chat, moved.to.chat) == ("42", "43")
    for text, addressed in (("hi", False), ("@15550783881 hi", True)):
        heard = parse({"type": "text", "text": {"body": text}, "group_id": "g1"})
        assert isinstance(heard, codec.MessageReceived)
        assert (heard.route.kind, heard.route.chat) == ("group", "g1")
        assert heard.addressed == addressed


def test_a_question_with_many_choices_or_a_long_text_is_a_list() -> None:
    from clew.core.channel_events import Button  # noqa: PLC0415  (only here)
    from clew.testing.whatsapp.state import read_text  # noqa: PLC0415  (only here)
    from tests.integration.test_whatsapp_contract import WhatsApp  # noqa: PLC0415  (only here)

    for length, count, kind in ((10, 3, "button"), (10, 5, "list"), (3000, 2, "list")):
        buttons = tuple(Button(label=f"Choose {n}", data=str(n)) for n in range(count))
        (chunk,) = messages.render(OutboundMessage(text="x" * length, buttons=buttons))
        payload = messages.build_message(WhatsApp.route, chunk, key="k")
        assert payload["interactive"]["type"] == kind
        assert read_text(payload) == "x" * length


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "token is missing"),
        ({"token": "x"}, "phone_number_id must be"),
        ({"token": "x", "phone_number_id": "1"}, "app_secret is missing"),
        ({"token": "x", "phone_number_id": "1", "app_secret": "x"}, "verify_token is missing"),
        ({"token": "x", "team": "a"}, "has no setting team"),
    ],
)
def test_a_setting_that_is_missing_or_unknown_is_named(given: dict[str, str], says: str) -> None:
    from clew.config.secret import Secret  # noqa: PLC0415  (only here)

    token = Secret.from_text(given.pop("token")) if "token" in given else None
    with pytest.raises(SettingsError, match=says):
        read_whatsapp_settings(
            ChannelConfig(name="whatsapp", token=token, base_url=None, options=given)
        )


def test_an_error_of_the_api_says_whether_to_wait_to_repeat_or_to_give_up() -> None:
    from clew.errors import AccountRefused, OutcomeUnknown, Throttled  # noqa: PLC0415  (only here)
    from clew.features.whatsapp.failures import to_channel_error  # noqa: PLC0415  (only here)

    for status, code, kind in (
        (400, 131056, Throttled),
        (400, 130429, Throttled),
        (429, None, Throttled),
        (401, 190, AccountRefused),
        (400, 131026, NotDelivered),
        (400, 132001, NotDelivered),
        (500, 131000, OutcomeUnknown),
        (502, None, OutcomeUnknown),
        (400, 131047, NotDelivered),
    ):
        answer = {} if code is None else {"error": {"code": code, "message": "no"}}
        error = to_channel_error(status, answer, {})
        assert type(error).__mro__[:-1].count(kind), (code, error)
        assert isinstance(error, kind)
        assert isinstance(error, NotSent) == (kind is Throttled)
