"""Plugins of Hermes change texts before they are stored, and watch messages and approvals."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from clew.cli.doctor_checks.features import check_features
from clew.core.channel_events import MessageReceived, MessageSender
from clew.core.entry import EntryKind
from clew.core.route import Route
from clew.features.hermes.transforms import declare_transforms
from clew.plugin.loading import get_features
from tests.features.delegation_world import do
from tests.features.hermes_world import HermesWorld, open_hermes, read_settings
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_text_that_a_plugin_changes_is_stored_sent_and_shown_as_it_left_it(
    tmp_path: Path,
) -> None:
    async with open_hermes(tmp_path, ["gardener"], trusted=["gardener"]) as world:
        answer = await world.say(do(("measure", {})))
        assert answer == "told: the bed is wet (checked)"
        stored = [one.text for one in await world.log() if one.kind is EntryKind.MESSAGE]
        assert stored[-1] == answer
        await world.say("and now?")
        sent = world.last_request()
        assert "the bed is wet (checked)" in sent
        assert "the bed is dry" not in sent
        await world.check()


async def test_a_plugin_is_told_of_approvals(tmp_path: Path) -> None:
    async with open_hermes(tmp_path, ["gardener"]) as world:
        await world.engine.submit(do(("measure", {})), target=world.home)
        await world.question()
        await _wait_for(world, "asked")
        await world.command("/deny")
        await _wait_for(world, "decided")
        told = dict(world.module("gardener").told)
        assert told["asked"]["command"] == "measure {}"
        assert told["asked"]["surface"] == "cli"
        assert told["asked"]["session_key"] == told["decided"]["session_key"] != ""
        assert told["decided"]["choice"] == "deny"
        assert [name for name, _ in world.module("gardener").told] == ["asked", "decided"]


async def _wait_for(world: HermesWorld, name: str) -> None:
    await wait_until(lambda: name in [one for one, _ in world.module("gardener").told], name)


def _write(text: str) -> MessageReceived:
    return MessageReceived(
        event="1",
        route=Route(platform="telegram", kind="dm", chat="42"),
        sender=MessageSender(id="42", name="Ada"),
        message="7",
        text=text,
        sent_at=datetime.now(UTC),
    )


async def test_a_plugin_drops_or_changes_a_message_before_it_is_stored(tmp_path: Path) -> None:
    async with open_hermes(tmp_path, ["gardener"]) as world:
        filter_message = world.engine.channel_inbox.filter_message
        assert await filter_message(_write("buy spam")) is None
        changed = await filter_message(_write("pls water"))
        assert changed is not None
        assert changed.text == "please water"
        kept = _write("/status")
        assert await filter_message(kept) is kept


class _Part:
    """What a plugin declares, by hook."""

    def __init__(self) -> None:
        self.hooks: dict[str, Any] = {}

    def add_hook(self, name: str, callback: Any) -> None:
        self.hooks[name] = callback


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("3 beds\n[exit code 0, 0.1 s]", "ls gave 3 beds (0)\n[exit code 0, 0.1 s]"),
        ("[exit code 1, 0.1 s, no output]", "ls gave  (1)\n[exit code 1, 0.1 s, no output]"),
        ("half\n[still running, in the background from now on, as p1]", None),
    ],
)
async def test_the_output_of_a_command_is_changed_and_its_end_stays(
    tmp_path: Path, result: str, expected: str | None
) -> None:
    async with open_hermes(tmp_path, ["gardener"]) as world:
        (plugin,) = world.plugins
        part: Any = _Part()
        declare_transforms(part, plugin)
        changed = part.hooks["transform_tool_result"](
            tool_name="shell",
            args={"command": "ls"},
            result=result,
            session_id="s",
            turn_id="t",
            tool_call_id="c",
            status="ok",
            duration_ms=1,
        )
    assert changed == expected


async def test_what_does_not_fit_is_answered_with_a_sentence_that_says_why(tmp_path: Path) -> None:
    features = get_features(read_settings(tmp_path, ["gardener"]))
    found = [one async for one in check_features(features) if one.what == "hermes gardener"]
    details = " / ".join(one.detail for one in found)
    assert "the hook 'pre_verify' is never called: a turn ends with the model's answer" in details
    assert "'llm_request' is never called: the model is sent what the store holds" in details
    assert "'tool_execution' is never called: a call runs once" in details
    assert "register_platform('irc') was accepted, and what it registers is not used" in details
    assert "Clew has channels of its own" in details
