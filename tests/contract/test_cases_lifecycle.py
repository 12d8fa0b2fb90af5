"""Cases of conversations that ended, came back, or did not."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from clew.commands.runner import CommandRunner
from clew.core.entry import EntryKind
from clew.core.reset_policy import ResetPolicy
from clew.core.route import Route, local_route
from clew.core.scope import scope_of
from clew.store.transactions import conversations
from tests.contract.lifecycle.doubles import Summariser, said, shape
from tests.contract.lifecycle.filling import fill
from tests.contract.lifecycle.house import House, open_house
from tests.contract.test_s4_boundaries import Later

if TYPE_CHECKING:
    from pathlib import Path

    from clew.core.ids import ConversationId

CHAT = Route(platform="telegram", kind="dm", chat="c1", user="u1")
TALK = local_route("talk")
IDLE = ResetPolicy(idle=timedelta(hours=24))
DAILY = ResetPolicy(daily_at=time(4), timezone=ZoneInfo("Europe/Berlin"))


async def _notices(house: House, conversation: ConversationId) -> list[str]:
    entries = await house.engine.read_entries(conversation)
    return [entry.text for entry in entries if entry.kind is EntryKind.EVENT]


@pytest.mark.parametrize("watched", [True, False], ids=["ended-by-the-watcher", "by-the-message"])
async def test_b101_after_a_pause_the_person_and_the_model_are_notified(
    store_url: str, tmp_path: Path, watched: bool
) -> None:
    clock = Later()
    async with open_house(store_url, tmp_path, clock=clock, reset=IDLE) as house:
        old = (await house.say("the first option or the second option?", to=CHAT)).conversation
        clock.ahead = timedelta(hours=25)
        if watched:
            await house.engine.run_maintenance()
            await house.quiet(old)
        new = (await house.say("what about the second option?", to=CHAT)).conversation
        assert new != old
        (notice,) = await _notices(house, new)
        assert f"/resume {old}" in notice
        (message,) = house.provider.sent[-1]
        note, asked = message.parts
        assert (note.part_kind, asked.part_kind) == ("system-prompt", "user-prompt")
        assert "nothing that was said in it is known to you" in str(note)
        assert said([message]) == "what about the second option?"
        await house.say("and the third?", to=CHAT)
        assert len(await _notices(house, new)) == 1, "once"
        back = await CommandRunner(house.engine).run_command(
            f"/resume {old}", target=CHAT, viewer=scope_of(CHAT)
        )
        assert back.conversation == old
        await house.say("now?", to=CHAT)
        assert shape(house.provider.sent[-1])[0] == "the first option or the second option?"
        assert await _notices(house, old) == []


async def test_b101_a_conversation_that_a_person_starts_afresh_needs_no_note(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path, reset=IDLE) as house:
        await house.say("hello", to=CHAT)
        await CommandRunner(house.engine).run_command("/new", target=CHAT, viewer=scope_of(CHAT))
        new = (await house.say("hello again", to=CHAT)).conversation
        assert await _notices(house, new) == []
        assert [part.part_kind for part in house.provider.sent[-1][0].parts] == ["user-prompt"]


async def test_b102_by_default_a_conversation_lasts_over_the_night(
    store_url: str, tmp_path: Path
) -> None:
    clock = Later()
    async with open_house(store_url, tmp_path, clock=clock) as house:
        evening = await house.say("good night", to=CHAT)
        for hours in (8.3, 24 * 40):
            clock.ahead += timedelta(hours=hours)
            await house.engine.run_maintenance()
            morning = await house.say("good morning", to=CHAT)
            assert (morning.conversation, morning.session) == (
                evening.conversation, evening.session,
            )  # fmt: skip
        assert len(house.provider.sent[-1]) == 5


@pytest.mark.parametrize("restarted", [True, False], ids=["restarted", "running"])
@pytest.mark.parametrize("closed_first", [True, False], ids=["closed-first", "expired-first"])
async def test_b103_an_expired_session_is_not_continued_in_any_order(
    store_url: str, tmp_path: Path, closed_first: bool, restarted: bool
) -> None:
    clock = Later()
    clock.ahead = _until_noon()
    async with open_house(store_url, tmp_path, clock=clock, reset=DAILY) as house:
        old = (await house.say("a secret", to=CHAT)).conversation
        if closed_first:
            await house.end(await house.engine.queue_close(old, reason="user_exit"))
        clock.ahead += timedelta(hours=20)
        await house.engine.run_maintenance()
        await house.quiet(old)
        if not closed_first:
            await house.end(await house.engine.queue_close(old, reason="user_exit"))
        if not restarted:
            await _afresh(house, old, closed_first=closed_first)
    if restarted:
        async with open_house(store_url, tmp_path, clock=clock, reset=DAILY) as house:
            await _afresh(house, old, closed_first=closed_first)


def _until_noon() -> timedelta:
    """From now to the next noon in Berlin, far from a daily reset."""
    now = datetime.now(ZoneInfo("Europe/Berlin"))
    noon = datetime.combine(now.date() + timedelta(days=1), time(12), tzinfo=now.tzinfo)
    return noon.astimezone(UTC) - now.astimezone(UTC)


async def _afresh(house: House, old: ConversationId, *, closed_first: bool) -> None:
    if closed_first:
        # A person who closes it may come back to it: it has ended before it could expire.
        assert (await house.lineage(old))[-1][1] == "user_exit"
        return
    assert (await house.lineage(old))[-1][1] == "daily"
    new = await house.say("good morning", to=CHAT)
    assert new.conversation != old
    assert "a secret" not in shape(house.provider.sent[-1])
    assert (await house.head(old)).end_reason == "daily"


async def test_b106_after_a_stop_the_same_session_continues_with_its_messages(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path) as house:
        await house.say("hello", to=TALK)
        running = await house.hold(to=TALK)
        await CommandRunner(house.engine).run_command("/stop", target=TALK, viewer=scope_of(TALK))
        stopped = await house.end(running)
        house.let_go()
        assert "stopped by the user" in await _notices(house, stopped.conversation)
        again = await house.say("go on", to=TALK)
        assert (again.conversation, again.session) == (stopped.conversation, stopped.session)
        assert shape(house.provider.sent[-1])[-1] == "go on"


async def test_b107_a_deleted_conversation_leaves_nothing_to_speak_from(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path) as house:
        old = (await house.say("a secret", to=TALK)).conversation
        await house.quiet(old)
        await house.engine.delete_conversation(old)
        await house.say("what did I say?", to=TALK)
        assert shape(house.provider.sent[-1]) == ["what did I say?"]
        assert old not in house.means.context_cache
    async with open_house(store_url, tmp_path) as house:
        await house.say("what did I say?", to=TALK)
        assert "a secret" not in shape(house.provider.sent[-1])
        assert (await house.engine.search_messages("secret")).items == ()


async def test_b109_a_message_in_flight_during_a_compaction_and_everything_else_has_one_id(
    store_url: str, tmp_path: Path
) -> None:
    gate = asyncio.Event()

    class Slow(Summariser):
        async def summarise_messages(self, *args: object, **more: object) -> str:
            gate.set()
            await asyncio.sleep(0.05)
            return await super().summarise_messages(*args, **more)  # pyright: ignore[reportArgumentType]

    async with open_house(store_url, tmp_path, window=200_000, summariser=Slow()) as house:
        conversation = await house.open(TALK)
        await house.store.write(conversations.move_route, CHAT.key, conversation)
        await house.store.write(fill, conversation, 30)
        old = (await house.head(TALK.key)).id
        first = await house.engine.submit("and now?", target=TALK)
        await gate.wait()
        second = await house.say("a second thing", to=CHAT)
        ended = await house.end(first)
        head = (await house.head(old)).id
        assert head != old
        assert {ended.session, second.session, (await house.head(CHAT.key)).id} == {head}
        said_since = (await house.engine.read_entries(conversation, after=30))[1:]
        assert {entry.session_id for entry in said_since} == {head}
        assert "a second thing" in shape(house.provider.sent[-1])
