"""S0: the current session survives compaction and restart, in the running product."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from clew.core.route import Route
from clew.core.session import COMPRESSION
from clew.engine.turn_hooks import ANSWERED_HOOK, END_HOOK
from clew.testing import Calls, FakeProvider, ReplyUsage, ScriptedCall, Text
from clew.wire import methods
from clew.wire.params import ResumeParams
from tests.contract.lifecycle import dying
from tests.contract.lifecycle.doubles import SUMMARY
from tests.contract.lifecycle.dying import Way, ends, filled, given, killed_in
from tests.contract.lifecycle.product import CHAT, NEW, OLD, plan, running
from tests.failing.compacting import Plays

if TYPE_CHECKING:
    from pathlib import Path

    from clew.testing import ProviderRequest, Reply

TELEGRAM = Route(platform="telegram", kind="dm", chat="42")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", list(Way), ids=lambda way: way.value)
async def test_s0_1_a_kill_right_after_a_compaction_loses_and_repeats_nothing(
    way: Way, store_url: str, tmp_path: Path
) -> None:
    model = Plays(turn=dying.answer)
    with FakeProvider(model) as provider:
        url = provider.openai_url
        await asyncio.to_thread(killed_in, way, store_url, tmp_path, url)
        assert len(model.summaries) == 1
        async with running(given(store_url, tmp_path, url)) as product:
            lineage = await product.lineage()
            assert [reason for _, reason in lineage] == [COMPRESSION, None]
            async with product.client() as client:
                assert await product.head_by(client, "talk") == lineage[-1][0]
            await ends(product)
            # It goes on in the compacted session, which nothing is compacted again for.
            assert await product.lineage() == lineage
            assert (await product.log())[-1].text == "echo: the next message"
    assert len(model.summaries) == 1
    first = next(one for one in model.turns[-1].messages if one.role != "system")
    assert SUMMARY.strip()[:40] in first.text


async def test_s0_2_a_turn_that_moves_the_session_moves_every_route_with_one_head_move(
    store_url: str, tmp_path: Path
) -> None:
    begun = plan(
        store_url,
        tmp_path,
        telegram=True,
        session_ids=(NEW,),
        flags=dying.WINDOW,
        model=Plays(turn=dying.answer),
    )
    await filled(begun, 20, route=TELEGRAM)
    async with running(begun) as product, product.client() as client:
        # The owner looks at what the person on Telegram talks about, under a name.
        named = ResumeParams(name="talk", conversation=CHAT)
        await client.call(methods.RESUME, named)
        assert f"session: {OLD}" in await product.chat("/status")
        product.store.written.clear()
        assert await product.chat("and now?") == "echo: and now?"
        await product.at_rest(CHAT)
        assert len(product.model.summaries) == 1
        assert product.store.written["head"] == 1
        assert product.store.written["route"] == 0
        assert f"session: {NEW}" in await product.chat("/status")
        assert [await product.head_by(client, name) for name in ("talk", CHAT)] == [NEW, NEW]


async def test_s0_3_a_turn_without_compaction_writes_nothing_to_routes_or_heads(
    store_url: str, tmp_path: Path
) -> None:
    async with running(plan(store_url, tmp_path, telegram=True)) as product:
        await product.chat("hello")
        await product.at_rest(CHAT)
        product.store.written.clear()
        await product.chat("hello again")
        await product.at_rest(CHAT)
        assert product.store.written["entry"] == 2
        assert product.store.written["route"] == 0
        assert product.store.written["head"] == 0


#: Tools that note in every way who has started them, one of them in a thread.
TOOLS = '''
import asyncio
import os
import subprocess
from pathlib import Path

NAMES = ("CLEW_SESSION_ID", "HERMES_SESSION_ID")
COMMAND = "echo $CLEW_SESSION_ID $HERMES_SESSION_ID"


def _note(file, seen):
    with open(file, "a") as notes:
        print(*seen, file=notes)


def look(file: str) -> str:
    """Look who calls, from a thread."""
    run = dict(capture_output=True, text=True, check=True)
    seen = [os.environ[name] for name in NAMES] + [os.getenv(name) for name in NAMES]
    seen += subprocess.run(["sh", "-c", COMMAND], **run).stdout.split()
    seen += subprocess.run(COMMAND, shell=True, env=None, **run).stdout.split()
    inherited = {**os.environ, "X": "1"}
    seen += subprocess.run(["sh", "-c", COMMAND], env=inherited, **run).stdout.split()
    os.system(f"{COMMAND} > {file}.system")
    seen += Path(f"{file}.system").read_text().split()
    with os.popen(COMMAND) as output:
        seen += output.read().split()
    _note(file, seen)
    return "a lot " * 9_000


async def wait(file: str) -> str:
    """Look who calls, from the event loop."""
    seen = [os.environ[name] for name in NAMES]
    for start in (
        asyncio.create_subprocess_exec("sh", "-c", COMMAND, stdout=-1),
        asyncio.create_subprocess_shell(COMMAND, stdout=-1),
    ):
        seen += (await (await start).communicate())[0].decode().split()
    _note(file, seen)
    return "done"


tools = [look, wait]
'''


class Looking:
    """A model that looks with both tools, so often for each file that it is told to look into."""

    def __init__(self, **usage: list[int]) -> None:
        #: Tokens that each look counts.
        self._usage = {name: iter(tokens) for name, tokens in usage.items()}

    def __call__(self, request: ProviderRequest) -> Reply:
        # After the compaction it stands below the summary, in one message.
        lines = "\n".join(request.user_texts).splitlines()
        file = next(line for line in lines if line.startswith("look ")).split()[1]
        tokens = next(self._usage[file.rpartition("/")[2]], None)
        if tokens is None:
            return Text("seen")
        calls = [ScriptedCall("look", {"file": file}), ScriptedCall("wait", {"file": file})]
        return Calls(calls, usage=ReplyUsage(tokens, 10))


async def test_s0_4_after_a_rotation_tools_subprocesses_hooks_and_route_name_one_session(
    store_url: str, tmp_path: Path
) -> None:
    begun = plan(
        store_url,
        tmp_path,
        session_ids=("sess-other", NEW),
        flags={**dying.WINDOW, "tools.modules": "looking_tools"},
        # The first look fills the window, so that the session is another one from then on.
        model=Plays(turn=Looking(talk=[60_000, 1_000], other=[1_000, 1_000])),
    )
    begun.home.plugin("looking_tools", TOOLS)
    await filled(begun, 6)
    async with running(begun) as product, product.client() as client:
        other = await product.submit(client, f"look {tmp_path}/other", to="other")
        await product.submit(client, f"look {tmp_path}/talk")
        for name in ("talk", other.conversation):
            await product.at_rest(name)
        await product.engine.wait_until_idle()
        assert (await product.log())[-1].text == "seen"
        assert await product.head_by(client, "talk") == NEW
    assert [set(seen) for seen in _notes(tmp_path / "talk")] == [{OLD}, {OLD}, {NEW}, {NEW}]
    assert [set(seen) for seen in _notes(tmp_path / "other")] == [{"sess-other"}] * 4
    assert {len(seen) for seen in _notes(tmp_path / "talk")} == {6, 14}
    told = [one for one in product.home.told() if one.facts["session_id"] != "sess-other"]
    assert [(one.hook, one.facts["session_id"]) for one in told if one.hook == "pre_tool_call"] == [
        ("pre_tool_call", session) for session in (OLD, OLD, NEW, NEW)
    ]
    ended = [one.facts["session_id"] for one in told if one.hook in (ANSWERED_HOOK, END_HOOK)]
    assert ended == [NEW, NEW]
    # A hook finds in its environment what it is told.
    assert all(one.environment == [one.facts["session_id"]] * 2 for one in told)
    # Outside of turns there is nothing.
    assert "CLEW_SESSION_ID" not in os.environ


def _notes(file: Path) -> list[list[str]]:
    return [line.split() for line in file.read_text().splitlines()]
