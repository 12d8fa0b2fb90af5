"""S4: session boundaries reach plugins."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from clew.clock import SystemClock
from clew.core.imported import was_finalized
from clew.core.reset import ResetPolicy
from clew.core.route import Route, local_route
from clew.core.scope import scope_of
from clew.core.session import IDLE
from clew.hooks import specs
from clew.hooks.specs import hookimpl
from tests.contract.lifecycle.house import House, open_house

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

CHAT = Route(platform="telegram", kind="dm", chat="c1", user="u1")
FINALIZED = ("finalize", {"session_id": "sess-old", "platform": "telegram"})
RESET = ("reset", {"session_id": "sess-new", "platform": "telegram"})


class Later:
    """A clock that is ahead of the machine's."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def now(self) -> datetime:
        return SystemClock().now() + self.ahead

    def monotonic(self) -> float:
        return SystemClock().monotonic() + self.ahead.total_seconds()


async def _new(house: House) -> str:
    """``/new`` in a chat that is in use."""
    old = (await house.say("hello", to=CHAT)).conversation
    reply = await house.engine.command("/new", target=CHAT, viewer=scope_of(CHAT))
    await house.quiet(old)
    return reply.text


async def test_s4_1_a_new_conversation_finalizes_the_session_that_it_leaves(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path, session_ids=["sess-old", "sess-new"]) as house:
        await _new(house)
        assert house.notes.told[0] == FINALIZED
    # With exactly these arguments: a plugin is given what the specification names.
    given = specs.on_session_finalize.__annotations__.keys() - {"return"}
    assert given == {"session_id", "platform"}


async def test_s4_2_a_new_conversation_tells_of_the_session_that_it_opens(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path, session_ids=["sess-old", "sess-new"]) as house:
        await _new(house)
        assert house.notes.told[1] == RESET
        assert (await house.head(CHAT.key)).id == "sess-new"
    given = specs.on_session_reset.__annotations__.keys() - {"return"}
    assert given == {"session_id", "platform"}


async def test_s4_3_finalize_is_told_before_reset_and_each_once(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path, session_ids=["sess-old", "sess-new"]) as house:
        await _new(house)
        await house.means.facts.catch_up()
        await house.engine.idle()
        assert house.notes.told == [FINALIZED, RESET]
    clock = Later()
    clock.ahead = timedelta(minutes=5)
    async with open_house(store_url, tmp_path, clock=clock) as house:
        await house.means.facts.catch_up()
        await house.engine.idle()
        assert house.notes.told == []


async def test_s4_3_what_a_process_did_not_live_to_tell_is_told_after_a_restart(
    store_url: str, tmp_path: Path
) -> None:
    clock = Later()
    async with open_house(
        store_url, tmp_path, clock=clock, session_ids=["sess-old", "sess-new"]
    ) as house:
        # As if it died between the commit and the telling.
        house.means.facts.ended = lambda item: None
        await _new(house)
        assert house.notes.told == []
    clock.ahead = timedelta(minutes=5)
    async with open_house(store_url, tmp_path, clock=clock) as house:
        await house.means.facts.catch_up()
        await house.engine.idle()
        assert house.notes.told == [FINALIZED, RESET]


async def test_s4_4_stopping_finalizes_the_sessions_of_running_turns_and_no_other(
    store_url: str, tmp_path: Path
) -> None:
    ids = ["sess-idle", "sess-a", "sess-b"]
    async with open_house(store_url, tmp_path, session_ids=ids) as house:
        await house.say("hello", to=local_route("idle"))
        for name in ("a", "b"):
            await house.hold(to=local_route(name))
    told = sorted(str(facts["session_id"]) for _, facts in house.notes.told)
    assert told == ["sess-a", "sess-b"]
    assert {hook for hook, _ in house.notes.told} == {"finalize"}
    # They are neither ended nor marked: their turns go on.
    async with open_house(store_url, tmp_path) as house:
        for name in ("a", "b"):
            conversation = await house.engine.resolve(name)
            await house.quiet(conversation)
            assert (await house.head(name)).id == f"sess-{name}"
            assert (await house.head(name)).open
            assert [e.text for e in await house.engine.entries(conversation)] == [
                "hold the line",
                "You said: hold the line",
            ]


class Broken:
    """A plugin whose every hook raises."""

    @hookimpl
    def on_session_start(self, session_id: str) -> None:
        raise RuntimeError(session_id)

    @hookimpl
    def on_session_end(self, session_id: str) -> None:
        raise RuntimeError(session_id)

    @hookimpl
    def on_session_finalize(self, session_id: str) -> None:
        raise SystemExit(session_id)

    @hookimpl
    async def on_session_reset(self, session_id: str) -> None:
        raise RuntimeError(session_id)


async def test_s4_5_a_plugin_whose_every_hook_raises_cannot_break_a_new_conversation(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(
        store_url, tmp_path, session_ids=["sess-old", "sess-new"], plugins=[Broken()]
    ) as house:
        text = await _new(house)
        assert "Session reset" in text or "New session" in text
        # The others are told all the same.
        assert house.notes.told == [FINALIZED, RESET]
        assert (await house.say("and now?", to=CHAT)).text == "You said: and now?"


async def test_s4_5_a_plugin_that_hangs_holds_up_nobody(store_url: str, tmp_path: Path) -> None:
    let_go = asyncio.Event()

    class Hanging:
        @hookimpl
        async def on_session_finalize(self, session_id: str) -> None:
            # Called in a thread and a loop of its own.
            while not let_go.is_set():  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async with open_house(store_url, tmp_path, plugins=[Hanging()]) as house:
        await house.say("hello", to=CHAT)
        reply = await house.engine.command("/new", target=CHAT, viewer=scope_of(CHAT))
        assert "New session" in reply.text
        assert (await house.say("and now?", to=CHAT)).text == "You said: and now?"
        let_go.set()


async def test_s4_6_an_expired_session_is_finalized_once_also_over_a_restart(
    store_url: str, tmp_path: Path
) -> None:
    clock, policy = Later(), ResetPolicy(idle=timedelta(hours=1))
    async with open_house(
        store_url, tmp_path, clock=clock, reset=policy, session_ids=["sess-expired"]
    ) as house:
        conversation = (await house.say("hello", to=CHAT)).conversation
        assert (await house.engine.maintain(dry_run=True)).overdue == 0
        clock.ahead = timedelta(hours=2)
        assert (await house.engine.maintain(dry_run=True)).overdue == 1
        assert (await house.engine.maintain()).overdue == 1
        assert (await house.engine.maintain()).overdue == 0
        await house.quiet(conversation)
        assert await house.lineage(CHAT.key) == [("sess-expired", IDLE)]
        over = ("finalize", {"session_id": "sess-expired", "platform": "telegram"})
        assert house.notes.told == [over]
    clock.ahead = timedelta(hours=3)
    async with open_house(store_url, tmp_path, clock=clock, reset=policy) as house:
        await house.engine.maintain()
        await house.means.facts.catch_up()
        await house.engine.idle()
        assert house.notes.told == []


async def test_s4_6_a_message_that_comes_too_late_finalizes_the_expired_session(
    store_url: str, tmp_path: Path
) -> None:
    clock, policy = Later(), ResetPolicy(idle=timedelta(hours=1))
    async with open_house(
        store_url, tmp_path, clock=clock, reset=policy, session_ids=["sess-expired", "sess-new"]
    ) as house:
        old = (await house.say("hello", to=CHAT)).conversation
        clock.ahead = timedelta(hours=2)
        new = (await house.say("still there?", to=CHAT)).conversation
        await house.quiet(old)
        assert new != old
        assert house.notes.told == [
            ("finalize", {"session_id": "sess-expired", "platform": "telegram"}),
            ("reset", {"session_id": "sess-new", "platform": "telegram"}),
        ]


@pytest.mark.parametrize(
    ("record", "finalized"),
    [
        ({}, False),
        ({"expiry_finalized": True}, True),
        ({"memory_flushed": True}, True),
        ({"memory_flushed": False}, False),
        ({"expiry_finalized": False, "memory_flushed": True}, False),
        ({"memory_flushed": False, "expiry_finalized": True}, True),
    ],
)
def test_s4_7_of_two_names_in_an_imported_record_the_newer_one_decides(
    record: Mapping[str, object], finalized: bool
) -> None:
    assert was_finalized(record) is finalized
