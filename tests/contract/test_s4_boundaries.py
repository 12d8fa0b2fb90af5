"""S4: session boundaries reach the plugins of the running product."""

from __future__ import annotations

import asyncio
import io
import time
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from clew.core.ids import IdGenerator
from clew.core.session import IDLE
from clew.engine.exports import ConversationExporter
from clew.engine.imports import ConversationImporter, open_section
from clew.testing import FakeProvider, Hang, echo
from tests.contract.lifecycle.later import Later
from tests.contract.lifecycle.product import (
    CHAT,
    HOOKS,
    SOON,
    Home,
    Plan,
    plan,
    running,
    stored,
)
from tests.exported import said_in, sealed, verified
from tests.failing.compacting import Plays
from tests.forking import FORKS
from tests.killing.killer import WatchedStore, die
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from clew.testing import ProviderRequest, Reply
    from tests.contract.lifecycle.product import Product

FINALIZED = ("finalize", {"session_id": "sess-old", "platform": "telegram"})
RESET = ("reset", {"session_id": "sess-new", "platform": "telegram"})
IDS = ("sess-old", "sess-new")
MINUTES = timedelta(minutes=5)


def _hangs(request: ProviderRequest) -> Reply:
    """A model that answers all but one thing."""
    return Hang() if request.last_user_text == "hold the line" else echo(request)


async def test_s4_1_a_new_conversation_finalizes_the_session_that_it_leaves(
    store_url: str, tmp_path: Path
) -> None:
    given = plan(store_url, tmp_path, telegram=True, session_ids=IDS)
    given.home.keep_diary("on_session_finalize")
    async with running(given) as product:
        await product.chat("hello")
        await product.chat("/new")
        await product.tells(FINALIZED)


async def test_s4_2_a_new_conversation_reports_the_session_that_it_opens(
    store_url: str, tmp_path: Path
) -> None:
    given = plan(store_url, tmp_path, telegram=True, session_ids=IDS)
    given.home.keep_diary("on_session_reset")
    async with running(given) as product:
        await product.chat("hello")
        await product.chat("/new")
        await product.tells(RESET)
        assert await product.lineage(CHAT) == [("sess-new", None)]


async def test_s4_3_finalize_is_called_before_reset_and_each_once_also_over_a_restart(
    store_url: str, tmp_path: Path
) -> None:
    clock = Later()
    given = plan(store_url, tmp_path, telegram=True, session_ids=IDS, clock=clock)
    async with running(given) as product:
        await product.chat("hello")
        await product.chat("/new")
        await product.tells(FINALIZED, RESET)
    clock.ahead = MINUTES
    async with running(replace(given, session_ids=("sess-3", "sess-4"))) as product:
        # This is told after whatever a look for untold ends has found.
        async with product.client() as client:
            await product.say(client, "hello")
            await product.command(client, "/new")
        last = ("finalize", {"session_id": "sess-3", "platform": "local"})
        then = ("reset", {"session_id": "sess-4", "platform": "local"})
        await product.tells(FINALIZED, RESET, last, then)


async def _die_at_new(given: Plan) -> None:
    async with running(given) as product, product.client() as client:
        await product.say(client, "hello")
        await product.command(client, "/new")
        await asyncio.sleep(60)


def _reach(place: str) -> None:
    # The end is stored, and plugins are not told yet.
    if place == "queued_commands._execute_command after":
        die()


def _dies(url: str, home: Path, provider: str) -> None:
    around = partial(WatchedStore, reach=_reach)
    given = Plan(url=url, home=Home(path=home), session_ids=IDS, provider=provider, around=around)
    asyncio.run(_die_at_new(given))


async def test_s4_3_a_killed_process_leaves_its_notifications_to_the_restart(
    store_url: str, tmp_path: Path
) -> None:
    given = plan(store_url, tmp_path, clock=Later(MINUTES))
    with FakeProvider(echo) as provider:
        home = given.home.path
        process = FORKS.Process(
            target=_dies, args=(store_url, home, provider.openai_url), daemon=True
        )
        process.start()
        await asyncio.to_thread(process.join, 60)
    assert process.exitcode == -9
    assert given.home.boundaries() == []
    async with running(given) as product:
        await product.tells(
            ("finalize", {"session_id": "sess-old", "platform": "local"}),
            ("reset", {"session_id": "sess-new", "platform": "local"}),
        )


SLOW = """
import time
from pathlib import Path

from clew.hooks.specs import hookimpl


@hookimpl
def on_session_finalize(session_id):
    time.sleep(0.5)
    with Path(__file__).with_name("slow.txt").open("a") as file:
        print(session_id, file=file)
"""


async def test_s4_4_stopping_finalizes_the_sessions_of_running_turns_and_no_other(
    store_url: str, tmp_path: Path
) -> None:
    ids = ("sess-idle", "sess-a", "sess-b")
    given = plan(
        store_url,
        tmp_path,
        session_ids=ids,
        model=Plays(turn=_hangs),
        plugins=("diary", "slow"),
    )
    given.home.plugin("slow", SLOW)
    async with running(given) as product, product.client() as client:
        await product.say(client, "hello", to="idle")
        for name in ("a", "b"):
            await product.submit(client, "hold the line", to=name)
        await wait_until(
            lambda: [one.last_user_text for one in product.model.turns].count("hold the line") == 2,
            seconds=SOON,
        )
    # Stopping waits until every plugin was called, slow ones too.
    told = [facts["session_id"] for hook, facts in given.home.boundaries() if hook == "finalize"]
    assert sorted(told) == ["sess-a", "sess-b"]
    assert given.home.boundaries() == [
        ("finalize", {"session_id": one, "platform": "local"}) for one in told
    ]
    slow = (given.home.path / "plugins" / "slow.txt").read_text().split()
    assert sorted(slow) == ["sess-a", "sess-b"]
    # They are neither ended nor marked: their turns go on.
    async with running(replace(given, session_ids=(), model=Plays(turn=echo))) as product:
        for name in ("a", "b"):
            await product.at_rest(name)
            assert await product.lineage(name) == [(f"sess-{name}", None)]
            assert [entry.text for entry in await product.log(name)] == [
                "hold the line",
                "echo: hold the line",
            ]


RAISES = """
@hookimpl
def {hook}(**kwargs):
    raise {error}("as ever")
"""


async def test_s4_5_a_plugin_whose_every_hook_raises_cannot_break_a_new_conversation(
    store_url: str, tmp_path: Path
) -> None:
    given = plan(store_url, tmp_path, telegram=True, session_ids=IDS, plugins=("broken", "diary"))
    raised = "".join(
        RAISES.format(hook=hook, error=("RuntimeError", "SystemExit")[number % 2])
        for number, hook in enumerate(HOOKS)
    )
    given.home.plugin("broken", f"from clew.hooks.specs import hookimpl\n{raised}")
    async with running(given) as product:
        assert await product.chat("hello") == "echo: hello"
        told = await product.chat("/new")
        assert "Session reset" in told or "New conversation" in told
        # The others are told all the same.
        await product.tells(FINALIZED, RESET)
        assert await product.chat("and now?") == "echo: and now?"


HANGS = """
import time
from pathlib import Path

from clew.hooks.specs import hookimpl


@hookimpl
def on_session_finalize(session_id):
    gate = Path(__file__).with_name("gate")
    end = time.monotonic() + 6
    while not gate.exists() and time.monotonic() < end:
        time.sleep(0.01)
    if not gate.exists():
        gate.with_name("nobody_came").touch()
"""


async def test_s4_5_a_plugin_that_hangs_blocks_nothing(store_url: str, tmp_path: Path) -> None:
    given = plan(store_url, tmp_path, telegram=True, plugins=("hangs", "diary"))
    given.home.plugin("hangs", HANGS)
    async with running(given) as product:
        await product.chat("hello")
        assert "New conversation" in await product.chat("/new")
        assert await product.chat("and now?") == "echo: and now?"
        plugins = given.home.path / "plugins"
        (plugins / "gate").touch()
        assert not (plugins / "nobody_came").exists(), "it was waited for"


IDLE_FOR_AN_HOUR = {"session.reset": "idle", "session.idle": "1h"}


async def test_s4_6_an_expired_session_is_finalized_once_also_over_a_restart(
    store_url: str, tmp_path: Path
) -> None:
    clock = Later()
    given = plan(
        store_url,
        tmp_path,
        telegram=True,
        session_ids=("sess-expired",),
        clock=clock,
        flags=IDLE_FOR_AN_HOUR,
    )
    over = ("finalize", {"session_id": "sess-expired", "platform": "telegram"})
    async with running(given) as product:
        await product.chat("hello")
        assert await product.lineage(CHAT) == [("sess-expired", None)]
    clock.ahead = timedelta(hours=2)
    # Nobody writes: whoever watches ends it.
    async with running(replace(given, session_ids=())) as product:
        await product.becomes([("sess-expired", IDLE)], CHAT)
        await product.tells(over)
    clock.ahead = timedelta(hours=3)
    async with running(replace(given, session_ids=("sess-3", "sess-4"))) as product:
        await _tells_of_another(product, over)


async def _tells_of_another(product: Product, *before: tuple[str, dict[str, Any]]) -> None:
    """New notifications follow all earlier ones that are pending."""
    async with product.client() as client:
        await product.say(client, "hello", to="another")
        await product.command(client, "/new", to="another")
    last = ("finalize", {"session_id": "sess-3", "platform": "local"})
    then = ("reset", {"session_id": "sess-4", "platform": "local"})
    await product.tells(*before, last, then)


async def test_s4_6_a_message_that_comes_too_late_finalizes_the_expired_session(
    store_url: str, tmp_path: Path
) -> None:
    clock = Later()
    given = plan(
        store_url,
        tmp_path,
        telegram=True,
        session_ids=("sess-expired", "sess-new"),
        clock=clock,
        flags=IDLE_FOR_AN_HOUR,
    )
    async with running(given) as product:
        await product.chat("hello")
        clock.ahead = timedelta(hours=2)
        await product.chat("still there?")
        await product.tells(
            ("finalize", {"session_id": "sess-expired", "platform": "telegram"}),
            ("reset", {"session_id": "sess-new", "platform": "telegram"}),
        )


#: Flags of another system's records, and whether its plugins were told of the session's end.
RECORDS: dict[str, tuple[dict[str, bool], bool]] = {
    "sess-0": ({"expiry_finalized": True}, True),
    "sess-1": ({"memory_flushed": True}, True),
    "sess-2": ({"memory_flushed": False}, False),
    "sess-3": ({"expiry_finalized": False, "memory_flushed": True}, False),
    "sess-4": ({"memory_flushed": False, "expiry_finalized": True}, True),
    "sess-5": ({}, False),
}


async def test_s4_7_of_two_names_in_an_imported_record_the_newer_one_decides(
    store_url: str, tmp_path: Path
) -> None:
    ids = IdGenerator(lambda: time.time_ns() // 1_000_000)
    named = [name for one in RECORDS for name in (one, f"{one}-next")]
    there = plan(f"sqlite:///{tmp_path}/there.db", tmp_path / "there", session_ids=named)
    async with running(there) as product, product.client() as client:
        for name in RECORDS:
            await product.say(client, "hello", to=name)
            await product.command(client, "/new", to=name)
        await product.engine.wait_until_idle()
        exports = ConversationExporter(product.store)
        export = b"".join([line async for line in exports.iter_lines(None)])
    said = said_in(export)
    sessions = {line["conversation"]: line["id"] for kind, line in said if kind == "session"}
    for kind, line in said:
        if kind == "input" and line["kind"] == "command":
            assert line.pop("expiry_finalized") is True
            line |= RECORDS[sessions[line["conversation"]]][0]
    export = b"".join(sealed(said))
    here = plan(store_url, tmp_path, clock=Later(MINUTES))
    async with (
        stored(here) as store,
        ConversationImporter(store, ids, version="0").register_owner() as imports,
    ):
        for outline in verified(export).conversations:
            await imports.import_conversation(open_section(io.BytesIO(export), outline))
    async with running(here) as product:
        untold = {name for name, (_, told) in RECORDS.items() if not told}

        def told() -> set[str]:
            finalized = product.home.told("on_session_finalize")
            return {str(one.facts["session_id"]) for one in finalized}

        await wait_until(lambda: told() >= untold, str(untold), seconds=SOON)
        await product.engine.wait_until_idle()
        assert told() == untold
