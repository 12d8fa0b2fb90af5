"""S1.6 to S1.10: what a person reads when a turn ends, on a chat platform and over JSON-RPC."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from clew.core.route import Route
from clew.core.turn import TurnOutcome
from clew.testing import Calls, Fail, Hang, ScriptedCall, Text, UnknownTool
from tests.contract.lifecycle.dying import filled
from tests.contract.lifecycle.product import CHAT, SOON, plan, running
from tests.failing.compacting import Plays
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from clew.testing import ProviderRequest, Reply, Script
    from tests.contract.lifecycle.product import Plan, Product

TELEGRAM = Route(platform="telegram", kind="dm", chat="42")
#: A tool that the model works with before it fails.
WORK = '''
def work(step: int) -> str:
    """Work."""
    return f"step {step} is done"


tools = [work]
'''


def _plan(url: str, folder: Path, script: Script) -> Plan:
    given = plan(url, folder, telegram=True, model=Plays(turn=script))
    given.home.plugin("working_tools", WORK)
    return replace(given, flags={"tools.modules": "working_tools", "compaction.enabled": "false"})


async def _told(product: Product, text: str) -> str:
    """Return the answer that the person on Telegram reads; programs read the same."""
    told = await product.chat(text)
    await product.at_rest(CHAT)
    assert (await product.log(CHAT))[-1].text == told
    return told


def _after_work(request: ProviderRequest, then: Reply, *, steps: int) -> Reply:
    done = sum(bool(message.calls) for message in request.messages)
    return Calls([ScriptedCall("work", {"step": done})]) if done < steps else then


async def test_s1_6_a_turn_that_worked_but_gave_no_text_names_what_went_wrong(
    store_url: str, tmp_path: Path
) -> None:
    unknown = UnknownTool("nonexistent_tool")
    given = _plan(store_url, tmp_path, lambda one: _after_work(one, unknown, steps=3))
    async with running(given) as product:
        told = await _told(product, "hello")
        assert "nonexistent_tool" in told
        # It asks again, in vain, until it has worked in five calls.
        assert len(product.model.turns) == 5
        assert "5 model calls" in told


async def test_s1_7_a_turn_that_the_user_interrupted_after_it_had_worked_stays_silent(
    store_url: str, tmp_path: Path
) -> None:
    given = _plan(store_url, tmp_path, lambda one: _after_work(one, Hang(), steps=2))
    async with running(given) as product, product.client() as client:
        telegram = product.telegram
        assert telegram is not None
        telegram.post_message("hello")
        await wait_until(lambda: len(product.model.turns) == 3, "three requests", seconds=SOON)
        assert await product.chat("/stop") == "Stopped."
        await product.at_rest(CHAT)
        # Whatever else was to be said would be delivered before this.
        product.model.turn = lambda _: Text("Here I am.")
        assert await product.chat("still there?") == "Here I am."
        assert telegram.list_texts(42) == ["Stopped.", "Here I am."]
        # A program that follows the input is told the same: nothing.
        product.model.turn = lambda one: _after_work(one, Hang(), steps=1)
        sent = await product.submit(client, "hello")
        await wait_until(lambda: len(product.model.turns) == 6, "two requests", seconds=SOON)
        await product.command(client, "/stop")
        item = await product.engine.get_input(sent.inbox_id)  # pyright: ignore[reportArgumentType]
        await product.at_rest()
        end = await product.engine.get_input_result(item.id)
        assert end is not None
        assert end.turn is not None
        assert (end.turn.outcome, end.text) == (TurnOutcome.CANCELLED, "")


OVERFLOW = Fail(
    "context_overflow",
    status=400,
    body={"error": {"message": "400 Bad Request: context length exceeded", "code": "x"}},
)


async def test_s1_8_an_overflow_advises_on_the_context_window_and_compact(
    store_url: str, tmp_path: Path
) -> None:
    given = _plan(store_url, tmp_path, lambda _: OVERFLOW)
    await filled(given, 60, route=TELEGRAM)
    async with running(given) as product:
        told = await _told(product, "and the next one?")
        assert "context window" in told
        assert "/compact" in told
        # Both names of the command are understood.
        for command in ("/compact", "/compress"):
            assert "There is no command" not in await product.chat(command)


FAILURE = Fail("server", status=500, body={"error": {"message": "500 Internal Server Error"}})


async def test_s1_9_any_other_failure_shows_its_text_and_reset(
    store_url: str, tmp_path: Path
) -> None:
    given = _plan(store_url, tmp_path, lambda _: FAILURE)
    await filled(given, 5, route=TELEGRAM)
    async with running(given) as product:
        told = await _told(product, "hello")
        assert "500 Internal Server Error" in told
        assert "/reset" in told
        assert "context window" not in told


@pytest.mark.parametrize("text", ["Hello!"])
async def test_s1_10_real_text_passes_unchanged(text: str, store_url: str, tmp_path: Path) -> None:
    async with (
        running(_plan(store_url, tmp_path, lambda _: Text(text))) as product,
        product.client() as client,
    ):
        assert await _told(product, "hello") == "Hello!"
        assert await product.say(client, "hello") == "Hello!"
