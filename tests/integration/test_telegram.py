"""Telegram: everything that people send, everything that is sent to them, and what goes wrong."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from pydantic_ai.messages import BinaryContent, ModelResponse, ToolCallPart, UserPromptPart

from clew.core.entry import Role
from clew.core.health import ChannelState
from clew.engine.attachments import load_messages
from clew.gateway import supervisor
from clew.store.transactions import attachments, entries
from clew.testing.telegram import FakeTelegram, FaultInjector
from tests.channels.desk import Desk, echo, open_desk, telegram_desk, until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage, UserContent

GROUP = -1001


def pay_or_echo(messages: Sequence[ModelMessage]) -> ModelResponse:
    """Calls a tool that needs a person's word where it is asked to pay."""
    answer = echo(messages)
    if (answer.text or "").endswith("pay"):
        return ModelResponse(parts=[ToolCallPart("pay", {"what": "`rm -rf` " + "x" * 5000})])
    return answer


SETTINGS = {"groups": str(GROUP), "stream": False}


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Of a fresh store; what is only between Telegram and the gateway is tested on one database."""
    return f"sqlite:///{tmp_path}/clew.db"


@pytest.fixture
async def desk(url: str, tmp_path: Path) -> AsyncGenerator[Desk]:
    async with telegram_desk(url, tmp_path, script=pay_or_echo, settings=SETTINGS) as found:
        yield found
        assert await found.world.check() == []


@pytest.fixture
async def both(store_url: str, tmp_path: Path) -> AsyncGenerator[Desk]:
    """As ``desk``, once on each database."""
    async with telegram_desk(store_url, tmp_path, script=pay_or_echo, settings=SETTINGS) as found:
        yield found
        assert await found.world.check() == []


async def test_messages_in_a_burst_are_one_question_and_its_answer_one_message(desk: Desk) -> None:
    desk.telegram.post_message("one")
    desk.telegram.post_message("two")
    assert await desk.answered() == ["You said: one | two"]
    await desk.quiet()
    assert len(desk.telegram.messages) == 1


async def test_a_group_a_topic_and_a_reply_are_kept_apart(desk: Desk) -> None:
    desk.telegram.post_message("between us", chat=GROUP)
    desk.telegram.post_message("@clew_bot, hello", chat=GROUP)
    desk.telegram.post_message("@clew_bot and here?", chat=GROUP, thread=7)
    desk.telegram.post_message("/status@other_bot", chat=GROUP)
    bot = {"id": desk.telegram.bot_id, "is_bot": True, "first_name": "Clew"}
    texts = await desk.answered(2, GROUP)
    first = desk.telegram.messages[0]
    before = {"message_id": first.id, "from": bot, "text": "Hello, Ada"}
    desk.telegram.post_message("and again", chat=GROUP, reply_to_message=before)
    texts = await desk.answered(3, GROUP)
    assert sorted(texts) == [
        "You said: Ada (42): and again\n\nIn reply to you:\n\nHello, Ada",
        "You said: Ada (42): and here?",
        "You said: Ada (42): hello",
    ]
    threads = {message.text: message.thread for message in desk.telegram.messages}
    assert threads["You said: Ada (42): and here?"] == 7
    # In a group, an answer is a reply to its message.
    assert all(message.reply_to is not None for message in desk.telegram.messages)
    await desk.quiet()


async def test_b097_each_answer_in_a_group_is_a_reply_to_its_own_question(
    url: str, tmp_path: Path
) -> None:
    settings = {**SETTINGS, "double_text": "queue"}
    async with telegram_desk(url, tmp_path, settings=settings) as desk:
        cities = ("Accra", "Bergen")
        asked = {
            f"You said: Ada (42): {city}": desk.telegram.post_message(
                f"@clew_bot {city}", chat=GROUP
            )
            for city in cities
        }
        await desk.answered(2, GROUP)
        assert {one.text: one.reply_to for one in desk.telegram.messages} == asked
        await desk.quiet()


@pytest.mark.both_databases
async def test_an_edit_of_the_last_message_is_asked_again(both: Desk) -> None:
    message = both.telegram.post_message("hallo")
    await both.answered()
    both.telegram.edit_message(message, "hello")
    assert await both.answered(2) == ["You said: hallo", "You said: hello"]
    await both.quiet()


@pytest.mark.both_databases
async def test_the_files_of_an_album_are_one_question_and_are_kept(both: Desk) -> None:
    for number in range(3):
        photo = both.telegram.add_file(f"{number}.jpg", b"\xff\xd8\xff %d" % number)
        sizes = [{"file_id": photo, "width": 90, "height": 90, "file_size": 6}]
        both.telegram.post_message(photo=sizes, media_group_id="album", caption=f"number {number}")
    note = both.telegram.add_file("note.txt", b"milk")
    document = {"file_id": note, "file_name": "note.txt", "mime_type": "text/plain"}
    both.telegram.post_message(document=document)
    (answer,) = await both.answered()
    assert answer.count("image/jpeg") == 3
    assert answer.count("note.txt, text/plain, 4 bytes") == 1
    kept = {word for word in answer.replace("[file ", " ").split() if word.startswith("att_")}
    held = [await _content(both, word.rstrip(":")) for word in kept]
    assert sorted(held) == [b"milk", b"\xff\xd8\xff 0", b"\xff\xd8\xff 1", b"\xff\xd8\xff 2"]
    # The model sees the pictures and reads the text.
    seen = [item for content in await _seen(both) for item in content]
    pictures = [item.data for item in seen if isinstance(item, BinaryContent)]
    assert pictures == [b"\xff\xd8\xff 0", b"\xff\xd8\xff 1", b"\xff\xd8\xff 2"]
    assert "milk\n[end of note.txt]" in seen
    await both.quiet()


async def _seen(both: Desk) -> list[Sequence[UserContent]]:
    """Return each message as the model receives it."""
    store = both.world.store.inner
    (conversation,) = await store.read(lambda t: t.fetch_all("SELECT id FROM conversation"))
    found = await store.read(entries.read_entries_after, conversation[0], after=0, limit=100)
    stored = [entry.message for entry in found if entry.role is Role.USER]
    return [
        part.content
        for message in await load_messages(store, stored, pictures=True)
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]


async def _content(both: Desk, attachment: str) -> bytes:
    found = await both.world.store.inner.read(attachments.read_content, attachment)
    assert found is not None
    return found


async def test_a_file_that_cannot_be_fetched_is_reported_and_blocks_nothing(desk: Desk) -> None:
    desk.telegram.post_message(voice={"file_id": "gone", "mime_type": "audio/ogg"})
    (answer,) = await desk.answered()
    assert "voice.ogg, audio/ogg: not fetched" in answer
    await desk.quiet()


async def test_b124_an_approval_shows_all_of_what_would_run_and_its_button_lets_it_run(
    both: Desk,
) -> None:
    both.telegram.post_message("pay")
    await until(lambda: any(message.buttons for message in both.telegram.messages))
    conversation = await both.world.engine.resolve_name("agent:main:telegram:dm:42")
    (question,) = await both.world.engine.list_approvals(conversation)
    shown = "".join(message.text for message in both.telegram.messages)
    assert question.args in shown.replace("\n", "")
    stranger = both.telegram.press_button("Allow", user=666)
    await until(lambda: both.telegram.get_response(stranger) is not None)
    assert both.telegram.get_response(stranger) == "You may not answer that."
    query = both.telegram.press_button("Allow")
    await until(lambda: both.telegram.get_response(query))
    assert both.telegram.get_response(query) == "Allowed: pay"
    await until(lambda: sum(both.world.tools.ran.values()) == 1)
    # The question says what became of it, and a press on that does nothing.
    await until(lambda: _labels(both) == ["Allowed: pay"])
    inert = both.telegram.press_button("Allowed: pay")
    await until(lambda: both.telegram.get_response(inert))
    assert both.telegram.get_response(inert) == "That question was answered."
    late = both.telegram.press_button(
        "Refuse", data=f"no:{question.id}", message=both.telegram.messages[0]
    )
    await until(lambda: both.telegram.get_response(late))
    assert "Too late" in (both.telegram.get_response(late) or "")
    await both.world.engine.request_stop(conversation)


def _labels(desk: Desk) -> list[str]:
    rows = [row for message in desk.telegram.messages for row in message.buttons]
    return [button["text"] for row in rows for button in row]


async def test_commands_are_listed_answered_and_carried_out_once(both: Desk) -> None:
    await until(lambda: both.telegram.commands)
    assert "new" in [one["command"] for one in both.telegram.commands]
    both.telegram.post_message("hello")
    await both.answered()
    both.telegram.faults.duplicated = 1.0
    both.telegram.post_message("/new Another talk")
    both.telegram.post_message("/nonsense")
    await both.answered(3)
    both.telegram.faults.duplicated = 0.0
    await both.quiet()
    _, new, hint = both.texts()
    assert new.startswith("New conversation: Another talk\nModel: ")
    assert "There is no command /nonsense" in hint
    view = await both.world.engine.list_conversations()
    assert len(view.items) == 2


async def test_markdown_that_telegram_refuses_is_sent_as_plain_text(desk: Desk) -> None:
    """B090."""
    desk.telegram.refuse_entities = True
    desk.telegram.post_message("**bold**")
    assert await desk.answered() == ["You said: bold"]
    assert desk.telegram.messages[0].entities == []
    await desk.quiet()


async def test_a_person_who_blocked_the_bot_leaves_a_dead_letter(desk: Desk) -> None:
    desk.telegram.post_message("hello")
    desk.telegram.block_bot(42)
    await desk.quiet()
    ((letter, _),) = await desk.world.engine.deliveries.list_deliveries()
    assert "blocked" in (letter.error or "")


async def test_a_group_that_gets_another_id_keeps_its_conversation(
    store_url: str, tmp_path: Path
) -> None:
    settings = {"groups": "*", "stream": False}
    async with telegram_desk(store_url, tmp_path, settings=settings) as desk:
        desk.telegram.post_message("@clew_bot one", chat=-5)
        await desk.answered(1, -5)
        before = await desk.world.engine.resolve_name("agent:main:telegram:group:-5")
        desk.telegram.migrate_group(-5, -1005)
        desk.telegram.post_message("@clew_bot two", chat=-1005)
        await desk.answered(1, -1005)
        assert await desk.world.engine.resolve_name("agent:main:telegram:group:-1005") == before
        await desk.quiet()


async def test_an_update_without_sense_keeps_nothing_away(desk: Desk) -> None:
    desk.telegram.send_update("message", {"message_id": "?", "chat": {}})
    desk.telegram.send_update("poll", {"id": "1"})
    desk.telegram.post_message("hello")
    assert await desk.answered() == ["You said: hello"]
    await desk.quiet()


async def test_an_answer_grows_in_its_place(url: str, tmp_path: Path) -> None:
    async with telegram_desk(url, tmp_path) as desk:
        go_on = asyncio.Event()

        async def wait() -> None:
            await go_on.wait()

        desk.world.points.arm("piece 'said:'", wait)
        desk.telegram.post_message("hello")
        await until(lambda: desk.texts() == ["You said: …"])
        go_on.set()
        await desk.answered()
        await desk.quiet()
        (message,) = desk.telegram.messages
        assert message.texts == ["You said: …", "You said: hello"]


# Failures


async def test_a_message_not_stored_when_the_process_died_is_answered_once(
    store_url: str, tmp_path: Path
) -> None:
    with FakeTelegram() as telegram:
        telegram.post_message("hello")
        for _ in range(3):
            async with open_desk(store_url, tmp_path, telegram) as desk:
                await desk.answered()
                await desk.quiet()
        assert telegram.list_texts(42) == ["You said: hello"]


async def test_b064_two_readers_of_one_bot_are_reported_and_do_not_fight(
    url: str, tmp_path: Path
) -> None:
    with FakeTelegram() as telegram:
        async with open_desk(url, tmp_path, telegram) as desk:
            telegram.post_message("hello")
            await desk.answered()
            other = await _poll(telegram)
            health = desk.world.engine.channels
            await until(lambda: health["telegram"].state is ChannelState.REFUSED)
            assert "another program" in (health["telegram"].error or "")
            other.cancel()
            await asyncio.wait({other})


async def _poll(telegram: FakeTelegram) -> asyncio.Task[None]:
    """Fetch the bot's messages as another program."""
    host, port = telegram.base_url.removeprefix("http://").removesuffix("/bot").split(":")

    async def poll() -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        body = b"timeout=25"
        head = (
            f"POST /bot{telegram.token}/getUpdates HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        try:
            await reader.read()
        finally:
            writer.close()
            await writer.wait_closed()

    return asyncio.create_task(poll())


async def test_a_token_that_telegram_rejects_is_reported_without_the_token(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeTelegram() as telegram:
        settings = {"token": "123456:another-token-than-that"}
        async with open_desk(url, tmp_path, telegram, settings=settings) as desk:
            health = desk.world.engine.channels
            await until(lambda: health["telegram"].state is ChannelState.REFUSED)
            assert "@BotFather" in (health["telegram"].error or "")
    out, err = capsys.readouterr()
    assert "another-token" not in out + err + str(health)


async def test_b148_a_poll_that_is_never_answered_is_replaced(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "SILENCE_TIMEOUT", 0.5)
    with FakeTelegram(longest_poll=0.1) as telegram:
        async with open_desk(url, tmp_path, telegram) as desk:
            telegram.post_message("hello")
            await desk.answered()
            health = desk.world.engine.channels
            assert health["telegram"].heard_at is not None
            telegram.hangs_polls = True
            telegram.post_message("anybody there?")
            await until(lambda: health["telegram"].state is ChannelState.DEGRADED)
            assert "silent" in (health["telegram"].error or "")
            telegram.hangs_polls = False
            assert (await desk.answered(2))[1] == "You said: anybody there?"
            await desk.quiet()


async def test_one_channel_that_cannot_be_reached_holds_no_other_up(
    url: str, tmp_path: Path
) -> None:
    """B156."""
    with FakeTelegram() as telegram:
        more = {"kind": "telegram", "token": "99:nobody", "base_url": "http://127.0.0.1:9/bot"}
        flags = {f"channels.second.{name}": value for name, value in more.items()}
        async with open_desk(url, tmp_path, telegram, flags=flags) as desk:
            telegram.post_message("hello")
            await desk.answered()
            health = desk.world.engine.channels
            await until(lambda: health["second"].state is ChannelState.DEGRADED)
            assert health["telegram"].state is ChannelState.CONNECTED
            await desk.quiet()


async def test_a_bad_day_loses_nothing_and_repeats_nothing_unmarked(
    store_url: str, tmp_path: Path
) -> None:
    """Cut connections, lost answers, waits, doubled and reordered updates, all at once."""
    faults = FaultInjector(
        cut=0.08, lost=0.08, throttled=0.08, broken=0.05, duplicated=0.2, reordered=0.5, seed=1
    )
    settings = {"allow": "*", "double_text": "queue", "stream": False}
    async with telegram_desk(store_url, tmp_path, faults=faults, settings=settings) as desk:
        for number in range(3):
            for user in range(1, 9):
                desk.telegram.post_message(f"message {number} of {user}", user=user)
        await desk.quiet()
        for user in range(1, 9):
            told = [text.removeprefix("(may be a repeat)\n") for text in desk.texts(user)]
            plain = [text for text in desk.texts(user) if "repeat" not in text]
            wanted = [f"You said: message {number} of {user}" for number in range(3)]
            assert list(dict.fromkeys(told)) == wanted
            assert len(plain) == len(set(plain))
        assert await desk.world.engine.deliveries.list_deliveries() == []


async def test_no_log_holds_the_token(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faults = FaultInjector(cut=0.3, lost=0.3, broken=0.2, seed=3)
    async with telegram_desk(url, tmp_path, faults=faults) as desk:
        desk.telegram.post_message("hello")
        await until(desk.texts)
        token = desk.telegram.token
        asked = json.dumps([call.parameters for call in desk.telegram.calls])
    out, err = capsys.readouterr()
    assert token.partition(":")[2] not in out + err + asked
