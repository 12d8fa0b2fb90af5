"""Words that the sender did not write: they reach the agent as data, and have no effect."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, UserPromptPart

from clew.agent.messages import extract_text
from clew.testing.discord import FakeDiscord
from clew.testing.discord.actions import OTHER_ROLE, OWN_ROLE
from clew.testing.slack import FakeSlack
from clew.testing.telegram import FakeTelegram
from clew.testing.webhook import FakeWebhook
from tests.channels.desk import echo, open_desk, serving, table, until
from tests.integration.api_server import serving as serving_http
from tests.integration.api_server import settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage

    from tests.line.world import World

BOB = {"type": "user", "date": 1, "sender_user": {"id": 7, "is_bot": False, "first_name": "Bob"}}
BOT = {"id": 123456, "is_bot": True, "first_name": "Clew"}
#: Texts that must have no effect if another person wrote them.
COMMANDS = ("/approve", "/approve all", "/deny", "/new", "/stop", "/pair {code}", "/pair remove 42")


def pay_or_echo(messages: Sequence[ModelMessage]) -> ModelResponse:
    """Calls a tool that needs a person's word where it is asked to pay."""
    answer = echo(messages)
    if (answer.text or "").endswith("pay"):
        return ModelResponse(parts=[ToolCallPart("pay", {"what": "the bill"})])
    return answer


def asked(world: World) -> str:
    """Return the model's last request, as it read it."""
    last = world.model.sent[-1][-1]
    assert isinstance(last, ModelRequest)
    parts = [part for part in last.parts if isinstance(part, UserPromptPart)]
    return extract_text(ModelRequest(parts=parts))


class Told:
    """Something that others wrote, as each platform tells it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def telegram(self) -> Sequence[dict[str, Any]]:
        text: dict[str, Any] = {"text": self.text, "entities": []}
        photo = [{"file_id": "x", "width": 1, "height": 1}]
        before: dict[str, Any] = {"message_id": 1, "from": BOT, **text}
        return [
            {**text, "forward_origin": BOB},
            {"photo": photo, "caption": self.text, "forward_origin": BOB, "media_group_id": "7"},
            {**text, "via_bot": {"id": 8, "is_bot": True, "username": "gif"}},
            {"text": "see", "reply_to_message": before},
            {"text": "see", "reply_to_message": before, "quote": {"text": self.text}},
            {"text": "see", "external_reply": {"origin": BOB}, "quote": {"text": self.text}},
            {**text, "is_automatic_forward": True, "sender_chat": {"id": -8, "title": "News"}},
        ]

    def discord(self) -> Sequence[dict[str, Any]]:
        snapshot = {"message": {"content": self.text}}
        author = {"id": "7", "username": "bob"}
        before = {"id": "5", "author": author, "content": self.text}
        return [
            {"message_reference": {"type": 1}, "message_snapshots": [snapshot]},
            {"message_reference": {"type": 0}, "type": 19, "referenced_message": before},
            {"embeds": [{"title": self.text}]},
            {"embeds": [{"description": self.text}]},
            {"components": [{"type": 10, "content": self.text}]},
        ]

    def slack(self) -> Sequence[dict[str, Any]]:
        element = {"type": "text", "text": self.text}
        rich = {"type": "rich_text_section", "elements": [element]}
        blocks = [{"type": "rich_text", "elements": [rich]}]
        share = {"is_share": True, "author_name": "Bob"}
        return [
            {"attachments": [{**share, "text": self.text}]},
            {"attachments": [{**share, "message_blocks": [{"message": {"blocks": blocks}}]}]},
            {"attachments": [{"title": "news", "text": self.text}]},
        ]


@asynccontextmanager
async def everywhere(url: str, home: Path) -> AsyncGenerator[tuple[World, dict[str, Any]]]:
    """The person 42, an operator, on four platforms."""
    with (
        FakeTelegram() as telegram,
        FakeDiscord(early=True) as discord,
        FakeSlack() as slack,
        FakeWebhook() as webhook,
    ):
        flags = {
            **table("telegram", {"token": telegram.token, "base_url": telegram.base_url}),
            **table("discord", {"token": discord.token, "base_url": discord.api_url}),
            **table("slack", {"token": slack.token, "app_token": slack.app_token}),
            **table("slack", {"base_url": slack.api_url}),
            **table("webhook", {"secret": webhook.secret, "base_url": webhook.answers_url}),
        }
        for name in ("telegram", "discord", "slack", "webhook"):
            own = {"allow": "*", "operators": ["42", "U42"], "groups": "*", "stream": False}
            flags |= table(name, own)
        async with (
            serving(url, home, flags, script=pay_or_echo) as world,
            serving_http(world.engine, settings_for(home)) as http,
        ):
            webhook.set_target(f"{http}/hooks/webhook")
            places = {"telegram": telegram, "discord": discord, "slack": slack}
            yield world, {**places, "webhook": webhook}
            assert await world.check() == []


def say_others(fake: Any, name: str, more: dict[str, Any]) -> None:
    """The person 42 sends something that others wrote."""
    match name:
        case "telegram":
            own = more.get("text")
            more = {key: value for key, value in more.items() if key != "text"}
            fake.post_message(own, **more)
        case "webhook":
            fake.add_event("message", {"user": "42", "quoted": [more]})
        case _:
            fake.post_message("", **more)


KEYS = {
    "telegram": "agent:main:telegram:dm:42",
    "discord": "agent:main:discord:dm:742",
    "slack": "agent:main:slack:dm:D42",
    "webhook": "agent:main:webhook:dm:42",
}


def texts(fake: Any, name: str) -> list[str]:
    chat = {"telegram": 42, "discord": "742", "slack": "D42", "webhook": "42"}[name]
    return fake.list_texts(chat)


@pytest.mark.parametrize("name", KEYS)
async def test_a_command_that_others_wrote_reaches_the_model_as_data_and_does_nothing(
    name: str, tmp_path: Path
) -> None:
    async with everywhere(f"sqlite:///{tmp_path}/clew.db", tmp_path) as (world, fakes):
        fake = fakes[name]
        fake.post_message(
            "pay", user="U42" if name == "slack" else 42 if name == "telegram" else "42"
        )
        await until(lambda: texts(fake, name))
        conversation = await world.engine.resolve_name(KEYS[name])
        await until(lambda: len(world.model.sent) == 1)
        (question,) = await world.engine.list_approvals(conversation)
        ways = 1 if name == "webhook" else len(getattr(Told("x"), name)())
        for way in range(ways):
            command = COMMANDS[way % len(COMMANDS)].format(code="ABCD-EFGH")
            sent = len(world.model.sent)
            if name == "webhook":
                say_others(fake, name, {"from": "Bob", "kind": "forward", "text": command})
            else:
                say_others(fake, name, getattr(Told(command), name)()[way])
            await until(lambda sent=sent: len(world.model.sent) > sent)
            assert f"> {command}" in asked(world)
            await world.engine.wait_until_idle()
        # Written text denies what was asked before it; nothing approves.
        assert (await world.engine.get_approval(question.id)).state.value == "denied"
        assert world.tools.ran == {}
        assert await world.engine.resolve_name(KEYS[name]) == conversation


async def test_a_forwarded_code_grants_no_access_and_a_typed_one_does(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/clew.db"
    settings = {"operators": ["42"], "pairing": "on", "stream": False}
    with FakeTelegram() as telegram:
        async with open_desk(url, tmp_path, telegram, settings=settings) as desk:
            telegram.post_message("let me in", user=9)
            await until(lambda: telegram.list_texts(9))
            code = telegram.list_texts(9)[0].split("clew pair approve ")[1].split()[0]
            telegram.post_message(f"/pair {code}", user=42, forward_origin=BOB)
            await desk.answered()
            assert (await desk.world.engine.pairing.list_people())[0].standing.value == "asked"
            telegram.post_message(f"/pair {code}", user=42)
            await desk.answered(2)
            assert (await desk.world.engine.pairing.list_people())[0].standing.value == "paired"
            await desk.quiet()


async def test_an_anonymous_administrator_gives_no_commands(tmp_path: Path) -> None:
    url, chat = f"sqlite:///{tmp_path}/clew.db", -1001
    settings = {"allow": "*", "groups": "*", "stream": False}
    with FakeTelegram() as telegram:
        async with open_desk(url, tmp_path, telegram, settings=settings) as desk:
            us = {"id": chat, "type": "supergroup", "title": "Us"}
            telegram.post_message("/new", chat=chat, sender_chat=us)
            (answer,) = await desk.answered(1, chat)
            assert answer == f"You said: Us ({chat}): /new"
            await desk.quiet()


REPLY = {"message_id": 1, "from": BOT, "text": "so?"}
PLACE = {"latitude": 1.5, "longitude": 2.5}
POLL = {"question": "Where to?", "options": [{"text": "Rome"}, {"text": "Oslo"}]}
TASKS = [{"id": 1, "text": "pack"}, {"id": 2, "text": "book", "completion_date": 1}]
LINK = {"type": "text_link", "offset": 4, "length": 4, "url": "https://e.x"}
NEWS = {"type": "channel", "chat": {"id": -8, "title": "News"}}
BLOCKS = [
    {"type": "heading", "size": 1, "text": "Trip"},
    {"type": "paragraph", "text": ["to ", {"type": "bold", "text": "Rome"}]},
]
#: Messages of Telegram without the usual fields, and what the agent reads of each.
FORMS: dict[str, tuple[dict[str, Any], str]] = {
    "forward": (
        {"text": "milk\n/new", "forward_origin": BOB},
        "Forwarded from Bob:\n> milk\n> /new",
    ),
    "forwarded poll": (
        {"poll": POLL, "forward_origin": NEWS},
        "Forwarded from News:\n> [poll: Where to? — Rome / Oslo]",
    ),
    "reply": ({"text": "yes", "reply_to_message": REPLY}, "yes\n\nIn reply to you:\n> so?"),
    "quote": (
        {"text": "this", "quote": {"text": "a part"}, "reply_to_message": REPLY},
        "this\n\nIn reply to you:\n> a part",
    ),
    "external reply": (
        {"text": "it", "external_reply": {"origin": BOB, "dice": {"emoji": "🎲", "value": 4}}},
        "it\n\nIn reply to Bob:\n> [dice 🎲 4]",
    ),
    "link": ({"text": "see here", "entities": [LINK]}, "see here (https://e.x)"),
    "poll": ({"poll": POLL}, "[poll: Where to? — Rome / Oslo]"),
    "location": ({"location": {"latitude": 52.5, "longitude": 13.4}}, "[location 52.5, 13.4]"),
    "dice": ({"dice": {"emoji": "🎲", "value": 4}}, "[dice 🎲 4]"),
    "sticker": ({"sticker": {"file_id": "x", "emoji": "😀"}}, "[sticker 😀]"),
    "story": ({"story": {"id": 1, "chat": {"id": 7, "first_name": "Bob"}}}, "[story Bob]"),
    "venue": (
        {"venue": {"title": "Bar", "address": "Road 1", "location": PLACE}, "location": PLACE},
        "[venue Bar, Road 1, 1.5, 2.5]",
    ),
    "contact": ({"contact": {"first_name": "Ann", "phone_number": "+49"}}, "[contact Ann, +49]"),
    "checklist": (
        {"checklist": {"title": "Trip", "tasks": TASKS}},
        "[checklist: Trip — ☐ pack / ☑ book]",
    ),
    "rich message": ({"rich_message": {"blocks": BLOCKS}}, "# Trip\n\nto Rome"),
    "unknown": ({"hologram": {"x": 1}}, "[unsupported: hologram]"),
}


async def test_content_without_text_is_named_and_attached_messages_are_quoted(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/clew.db"
    with FakeTelegram() as telegram:
        settings = {"allow": "*", "double_text": "queue", "stream": False}
        async with open_desk(url, tmp_path, telegram, settings=settings) as desk:
            for user, (given, _) in enumerate(FORMS.values(), 100):
                more = {key: value for key, value in given.items() if key != "text"}
                telegram.post_message(given.get("text"), user=user, **more)
            await desk.quiet()
            found: dict[str, str] = {}
            for user, name in enumerate(FORMS, 100):
                conversation = await desk.world.engine.resolve_name(
                    f"agent:main:telegram:dm:{user}"
                )
                log = await desk.world.log(conversation)
                found[name] = next(entry.text for entry in log if entry.role is not None)
            assert found == {name: text for name, (_, text) in FORMS.items()}


async def test_a_voice_message_says_how_long_it_is_beside_its_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/clew.db"
    with FakeTelegram() as telegram:
        async with open_desk(url, tmp_path, telegram, settings={"stream": False}) as desk:
            voice = {"file_id": telegram.add_file("voice.ogg", b"OggS"), "duration": 12}
            telegram.post_message(voice={**voice, "mime_type": "audio/ogg"})
            (answer,) = await desk.answered()
            assert "[voice message, 12 s]\n[file att_" in answer
            await desk.quiet()


# Mentions


async def test_discord_s_own_role_is_a_mention_and_another_one_is_not(tmp_path: Path) -> None:
    async with everywhere(f"sqlite:///{tmp_path}/clew.db", tmp_path) as (world, fakes):
        discord: FakeDiscord = fakes["discord"]
        discord.open_channel("90")
        discord.post_message(f"<@&{OTHER_ROLE}> between us", channel="90")
        discord.post_message(f"<@&{OWN_ROLE}> hello", channel="90")
        await until(lambda: discord.list_texts("90"))
        assert discord.list_texts("90") == ["You said: Ada (42): hello"]
        await world.engine.wait_until_idle()


async def test_a_user_group_of_slack_is_a_mention_where_the_app_is_in_it(tmp_path: Path) -> None:
    async with everywhere(f"sqlite:///{tmp_path}/clew.db", tmp_path) as (world, fakes):
        slack: FakeSlack = fakes["slack"]
        slack.set_group("S1", ["U1"])
        slack.set_group("S2", ["U1", "U0CLEW"])
        slack.post_message("<!subteam^S1|@ops> between us", channel="C1")
        slack.post_message("<!subteam^S3|@gone> between us", channel="C1")
        slack.post_message("<!subteam^S2|@bots> hello", channel="C1")
        await until(lambda: slack.list_texts("C1"))
        assert slack.list_texts("C1") == ["You said: Ada (U42): hello"]
        await world.engine.wait_until_idle()


async def test_a_mention_in_a_thread_includes_its_first_message(
    tmp_path: Path,
) -> None:
    async with everywhere(f"sqlite:///{tmp_path}/clew.db", tmp_path) as (world, fakes):
        slack: FakeSlack = fakes["slack"]
        ts = slack.post_message("the build is red\n/new", user="U7", channel="C1")
        for text in ("help", "again"):
            slack.post_message(f"<@U0CLEW> {text}", channel="C1", thread_ts=ts)
            await until(lambda text=text: any(text in one for one in slack.list_texts("C1")))
        assert "help\n\nIn reply to U7:\n> the build is red\n> /new" in json.dumps(
            [
                entry.text
                for entry in await world.log((await world.engine.list_conversations()).items[0].id)
            ]
        ).replace("\\n", "\n")
        assert asked(world) == "Ada (U42): again"
        await world.engine.wait_until_idle()
