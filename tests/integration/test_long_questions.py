"""Calls that are too long for messages: a file shows all of them, or they cannot be allowed."""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest
from pydantic_ai.messages import ModelResponse, ToolCallPart

from clew.config.secret import Secret
from clew.core.approval import ApprovalState, escape_invisible, format_question
from clew.core.call_document import MAX_DOCUMENT_CHARS
from clew.core.channel_events import OutboundMessage, TextDocument, dump_message, load_message
from clew.core.delivery import DeliveryState
from clew.core.route import Route
from clew.errors import NotDelivered, NotSent, OutcomeUnknown
from clew.gateway.channel import ChannelConfig
from clew.gateway.channels.discord.channel import open_channel as open_discord
from clew.gateway.channels.slack.channel import open_channel as open_slack
from clew.testing.channels import MemoryPlatform
from clew.testing.discord import FakeDiscord
from clew.testing.faults import CallFault, FaultInjector
from clew.testing.slack import FakeSlack
from tests.channels.desk import Desk, MemoryDesk, echo, memory_desk, telegram_desk, until
from tests.integration.test_channel_approvals import approval

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage

    from clew.core.approval import Approval

#: 200 kB with everything that a file could get wrong.
LONG = "".join(f"line {n}\tü 😀 `<&>` \u202e \u2028 ARGUMENTS:\n" for n in range(4500))


def pay_much(messages: Sequence[ModelMessage]) -> ModelResponse:
    answer = echo(messages)
    if answer.text == "You said: pay":
        return ModelResponse(parts=[ToolCallPart("pay", {"what": LONG})])
    return answer


async def only_approval(desk: Desk | MemoryDesk, route: str) -> Approval:
    conversation = await desk.world.engine.resolve_name(route)
    (asked,) = await desk.world.engine.list_approvals(conversation)
    return asked


async def test_a_file_shows_all_of_a_long_call_before_its_buttons_come(
    store_url: str, tmp_path: Path
) -> None:
    platform = MemoryPlatform()
    platform.capabilities = replace(platform.capabilities, documents=True)
    async with memory_desk(store_url, tmp_path, platform, script=pay_much) as desk:
        platform.post_message("pay")
        await until(lambda: platform.messages and platform.messages[-1].buttons)
        file, question = platform.messages
        assert file.document is not None
        assert not file.buttons
        args = file.document.split("to the end of this file):\n\n", 1)[1]
        assert json.loads(args) == {"what": LONG}
        assert "\u202e" not in args
        assert len(question.text) < 1000
        assert "call-1.txt" in question.text
        platform.press_button("Allow")
        await desk.quiet()
        assert desk.world.tools.ran == {f"pay {LONG}": 1}
        assert await desk.world.check() == []


async def test_after_a_restart_the_question_follows_its_file_which_is_not_sent_again(
    tmp_path: Path,
) -> None:
    platform, url = MemoryPlatform(), f"sqlite:///{tmp_path}/clew.db"
    platform.capabilities = replace(platform.capabilities, documents=True)
    held: list[str] = []

    def hold_question(what: str, _chat: str) -> float | None:
        if what != "send" or not platform.messages:
            return None
        held.append(what)
        return 0.01

    platform.throttle_hook = hold_question
    async with memory_desk(url, tmp_path, platform, script=pay_much):
        platform.post_message("pay")
        await until(lambda: held)
    platform.throttle_hook = MemoryPlatform().throttle_hook
    async with memory_desk(url, tmp_path, platform, script=pay_much) as desk:
        await until(lambda: platform.messages[-1].buttons)
        assert [one.document is None for one in platform.messages] == [False, True]
        platform.press_button("Refuse")
        await desk.quiet()
        assert desk.world.tools.ran == {}
        assert await desk.world.check() == []


@pytest.mark.both_databases
async def test_where_no_file_can_be_sent_a_long_call_is_not_allowed_from_the_chat(
    store_url: str, tmp_path: Path
) -> None:
    platform = MemoryPlatform()
    async with memory_desk(store_url, tmp_path, platform, script=pay_much) as desk:
        platform.post_message("pay")
        await until(lambda: platform.messages)
        (notice,) = platform.messages
        assert "too long to be shown here" in notice.text
        assert not notice.buttons
        platform.post_message("/approve")
        await until(lambda: len(platform.messages) == 2)
        assert platform.messages[1].text == "Nothing is waiting for your approval here."
        asked = await only_approval(desk, platform.route.key)
        assert f"clew chat -c {asked.conversation_id}" in notice.text
        # At a terminal all of it is seen.
        await desk.world.engine.answer_approval(asked.id, yes=True, by="local")
        await desk.quiet()
        assert desk.world.tools.ran == {f"pay {LONG}": 1}
        failed = await desk.world.engine.deliveries.list_deliveries()
        assert [one.state for one, _ in failed] == [DeliveryState.FAILED]
        assert await desk.world.check() == []


async def test_on_telegram_a_lost_file_comes_again_and_a_refused_one_leaves_a_notice(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/clew.db"
    faults = FaultInjector(queued=[CallFault.NONE, CallFault.LOST])
    settings = {"stream": False}
    async with telegram_desk(
        url, tmp_path, faults=faults, script=pay_much, settings=settings
    ) as desk:
        telegram = desk.telegram
        telegram.post_message("pay", user=42)
        await until(lambda: telegram.messages and telegram.messages[-1].buttons)
        *files, question = telegram.messages
        assert [one.document is None for one in files] == [False] * len(files)
        assert question.document is None
        telegram.press_button("Refuse", user=42)
        await desk.quiet()
        telegram.refuse_documents = True
        before = len(telegram.messages)
        telegram.post_message("pay", user=42)
        await until(lambda: len(telegram.messages) > before)
        notice = telegram.messages[-1]
        assert "too long to be shown here" in notice.text
        assert not notice.buttons
        asked = await only_approval(desk, "agent:main:telegram:dm:42")
        assert asked.state is ApprovalState.OPEN
        await desk.world.engine.request_stop(asked.conversation_id)
        await desk.quiet()
        assert desk.world.tools.ran == {}


MESSAGE = OutboundMessage(
    text="Read it.", document=TextDocument(name="call-1.txt", text=LONG, otherwise="no")
)


async def test_slack_shares_no_file_that_failed_half_way_or_needs_a_scope() -> None:
    with FakeSlack() as slack:
        options = {"app_token": Secret.from_text(slack.app_token)}
        config = ChannelConfig(
            name="slack",
            token=Secret.from_text(slack.token),
            base_url=slack.api_url,
            options=MappingProxyType(options),
        )
        slack.post_message("Hello", user="U42")
        route = Route(platform="slack", kind="dm", chat="D42", thread="1.000001")
        async with open_slack(config) as channel:
            file, _ = channel.render(MESSAGE)
            slack.faults.queued += [CallFault.LOST]
            with pytest.raises(NotSent):
                await channel.send(route, file, key="k")
            slack.faults.queued += [CallFault.NONE, CallFault.LOST]
            with pytest.raises(NotSent):
                await channel.send(route, file, key="k")
            assert await channel.find_message(route, file, key="k") is None
            slack.faults.queued += [CallFault.NONE] * 2 + [CallFault.LOST]
            with pytest.raises(OutcomeUnknown):
                await channel.send(route, file, key="k")
            (shared,) = slack.messages
            assert (shared.document, shared.thread) == (LONG, "1.000001")
            assert await channel.find_message(route, file, key="k") == shared.files[0]["id"]
            slack.missing_scopes.add("files:write")
            with pytest.raises(NotDelivered, match="lacks the scope files:write"):
                await channel.send(route, file, key="k2")


async def test_discord_says_that_it_may_not_send_files() -> None:
    with FakeDiscord() as discord:
        discord.refuses_files = True
        discord.post_message("Hello")
        config = ChannelConfig(
            name="discord",
            token=Secret.from_text(discord.token),
            base_url=discord.api_url,
            options=MappingProxyType({}),
        )
        async with open_discord(config) as channel:
            file, _ = channel.render(MESSAGE)
            route = Route(platform="discord", kind="dm", chat="742")
            with pytest.raises(NotDelivered, match="Missing Permissions"):
                await channel.send(route, file, key="k")


def test_a_long_preview_is_shown_by_its_first_lines_and_cannot_imitate_the_arguments() -> None:
    args = json.dumps({"content": LONG}, ensure_ascii=False)
    preview = "".join(f"+{line}\n" for line in LONG.splitlines()) + "ARGUMENTS (3 characters)\n{}\n"
    asked = format_question(replace(approval(args), preview=preview))
    assert load_message(dump_message(asked)) == asked
    assert asked.document is not None
    lines = asked.document.text.split("\n")
    (begin,) = (n for n, line in enumerate(lines) if line.startswith("ARGUMENTS ("))
    assert "\n".join(lines[begin + 2 :]) == escape_invisible(args)
    assert "more lines, which are in the file" in asked.text
    assert len(asked.text) < 4000
    # If both are too long for one file, it contains the arguments.
    both = format_question(replace(approval(args), preview="+x\n" * MAX_DOCUMENT_CHARS))
    assert both.document is not None
    assert "WHAT IT CHANGES" not in both.document.text
    assert both.buttons
    # A call that is too long for a file has no buttons.
    endless = format_question(approval(json.dumps({"x": "y" * MAX_DOCUMENT_CHARS})))
    assert (endless.buttons, endless.document) == ((), None)
