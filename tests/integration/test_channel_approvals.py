"""Approvals in chats: informed, meant, and of the right person."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from pydantic_ai.messages import ModelResponse, ToolCallPart
from structlog.testing import capture_logs

from clew.api.builtin_operations import BUILTIN_OPERATIONS
from clew.api.operation_context import OperationContext
from clew.api.rpc.connection import serve_client
from clew.clock import SystemClock
from clew.core.access import AccessStatus, ChannelAccount
from clew.core.approval import Approval, ApprovalState, escape_invisible, format_question
from clew.core.channel_events import ButtonPressed, MessageSender
from clew.core.ids import ApprovalId, ConversationId, TurnId
from clew.core.scope import LOCAL
from clew.features.webhooks import codec as webhook_codec
from clew.gateway.channels.discord import codec as discord_codec
from clew.gateway.channels.slack import codec as slack_codec
from clew.gateway.channels.telegram import codec as telegram_codec
from clew.testing.channels import MemoryPlatform
from clew.tui.transports import in_process
from clew.wire import methods
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.params import RespondParams
from tests.channels.desk import MemoryDesk, echo, memory_desk, until
from tests.integration.api_server import settings_for
from tests.integration.rpc_clients import client
from tests.line.world import open_world

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage

    from clew.core.ids import ConversationId as Conversation


def script(messages: Sequence[ModelMessage]) -> ModelResponse:
    """Calls the tools that it is asked to call: ``pay`` and ``dare`` need a person's word."""
    answer = echo(messages)
    words = (answer.text or "").split()
    calls = [word for word in words if word in ("pay", "dare")]
    if words[:2] == ["You", "said:"] and calls:
        return ModelResponse(parts=[ToolCallPart(call, {"what": "bread"}) for call in calls])
    return answer


@pytest.fixture
def platform() -> MemoryPlatform:
    return MemoryPlatform()


_SETTINGS = {
    "allow": ["42", "43"],
    "operators": ["boss"],
    "groups": ["club"],
    "double_text": "auto",
    "stream": False,
}


@pytest.fixture
async def desk(
    store_url: str, tmp_path: Path, platform: MemoryPlatform
) -> AsyncGenerator[MemoryDesk]:
    async with memory_desk(store_url, tmp_path, platform, script=script, settings=_SETTINGS) as one:
        yield one
        assert await one.world.check() == []


async def questions(desk: MemoryDesk, count: int, key: str | None = None) -> Conversation:
    """Wait until questions were shown; the conversation that asks them."""
    shown = desk.platform.messages
    await until(lambda: sum(bool(one.buttons) for one in shown) == count)
    conversation = await desk.world.engine.resolve_name(key or desk.platform.route.key)
    await desk.world.until(lambda: _sent(desk, conversation))
    return conversation


async def _sent(desk: MemoryDesk, conversation: Conversation) -> bool:
    del conversation
    return not await desk.world.engine.deliveries.list_undelivered_routes()


async def test_a_text_that_is_no_command_approves_nothing(desk: MemoryDesk) -> None:
    desk.platform.post_message("pay")
    conversation = await questions(desk, 1)
    (asked,) = await desk.world.engine.list_approvals(conversation)
    desk.platform.post_message("actually no, do not do that: approve, yes, allow, ok")
    await until(lambda: len(desk.platform.list_texts()) == 2)
    assert (await desk.world.engine.get_approval(asked.id)).state is ApprovalState.DENIED
    await desk.quiet()
    assert desk.world.tools.ran == {}


async def test_one_of_several_approvals_is_chosen_by_a_stable_number(desk: MemoryDesk) -> None:
    desk.platform.post_message("pay dare")
    conversation = await questions(desk, 2)
    open_ = await desk.world.engine.list_approvals(conversation)
    desk.platform.post_message("/approve")
    await until(lambda: len(desk.platform.list_texts()) == 3)
    listed = f"1 ({open_[0].tool}), 2 ({open_[1].tool})"
    assert desk.platform.list_texts()[-1].startswith(f"2 questions wait, {listed}: /approve 1")
    assert desk.world.tools.ran == {}
    assert "/approve 2 allows it" in desk.platform.list_texts()[1]
    desk.platform.post_message("/deny 1")
    await until(lambda: len(desk.platform.list_texts()) == 4)
    # The second is still the second.
    desk.platform.post_message("/approve 1")
    await until(lambda: len(desk.platform.list_texts()) == 5)
    assert "no question 1 that waits" in desk.platform.list_texts()[-1]
    desk.platform.post_message("/approve 2")
    await desk.quiet()
    assert [name.split()[0] for name in desk.world.tools.ran] == [open_[1].tool]


async def test_only_what_was_shown_can_be_approved(desk: MemoryDesk) -> None:
    held: list[str] = []

    def refuse(what: str, _chat: str) -> float | None:
        # The second question does not arrive.
        asks = sum(bool(one.buttons) for one in desk.platform.messages)
        if what == "send" and asks == 1 and not held:
            held.append(what)
            return 3600.0
        return None

    desk.platform.throttle_hook = refuse
    desk.platform.post_message("pay dare")
    await until(lambda: held)
    conversation = await desk.world.engine.resolve_name(desk.platform.route.key)
    shown, hidden = await desk.world.engine.list_approvals(conversation)
    desk.platform.post_message("/approve all")

    async def answered() -> bool:
        return (await desk.world.engine.get_approval(shown.id)).state is ApprovalState.APPROVED

    await desk.world.until(answered)
    assert (await desk.world.engine.get_approval(hidden.id)).state is ApprovalState.OPEN
    await desk.world.engine.request_stop(conversation)


async def test_a_message_answers_no_question_that_came_after_it_was_written(
    desk: MemoryDesk,
) -> None:
    platform = desk.platform
    before = datetime.now(UTC)
    platform.post_message("pay dare")
    conversation = await questions(desk, 2)
    first, second = await desk.world.engine.list_approvals(conversation)
    for n, late in enumerate(("/approve", "/approve all", "/approve 2", "/deny 1 no"), 3):
        platform.post_message(late, sent_at=before)
        await until(lambda n=n: len(platform.list_texts()) == n)
        told = platform.list_texts()[-1]
        assert told.startswith("Nothing was answered: a question came after you wrote this: /")
    assert len(await desk.world.engine.list_approvals(conversation)) == 2
    # An id can mean one question only.
    platform.post_message(f"/approve {first.id}", sent_at=before)
    await until(lambda: len(platform.list_texts()) == 7)
    assert platform.list_texts()[-1] == f"Allowed: {first.tool}. 1 more wait."
    # Without a number, it answers what was there to be seen.
    platform.post_message("/approve")
    await desk.quiet()
    assert sum(desk.world.tools.ran.values()) == 2
    assert (await desk.world.engine.get_approval(second.id)).state is ApprovalState.APPROVED


async def test_in_a_group_only_an_operator_answers_and_others_change_nothing(
    desk: MemoryDesk,
) -> None:
    platform = desk.platform
    key = "agent:main:memory:group:club"
    platform.post_message("pay", user="42", chat="club", kind="group")
    conversation = await questions(desk, 1, key)
    (asked,) = await desk.world.engine.list_approvals(conversation)
    with capture_logs() as logs:
        for user in ("42", "43"):
            other = _press(platform, user)
            await until(lambda other=other: other in platform.answers)
            assert "an operator can" in platform.answers[other]
        platform.post_message("/approve", user="43", chat="club", kind="group")
        await until(lambda: len(platform.list_texts("club")) == 2)
    assert "an operator can" in platform.list_texts("club")[1]
    refused = [one["user"] for one in logs if one["event"] == "approval_answer_refused"]
    assert refused == ["42", "43", "43"]
    assert (await desk.world.engine.get_approval(asked.id)) == asked
    boss = _press(platform, "boss")
    await until(lambda: boss in platform.answers)
    assert platform.answers[boss] == "Allowed: pay"
    await desk.quiet()
    assert sum(desk.world.tools.ran.values()) == 1


async def test_in_a_group_whoever_asked_answers_as_well_where_that_is_set(
    tmp_path: Path, platform: MemoryPlatform
) -> None:
    async with memory_desk(
        "sqlite:///clew.db",
        tmp_path,
        platform,
        script=script,
        settings=_SETTINGS,
        flags={"approvals.approvers": "people"},
    ) as desk:
        platform.post_message("pay", user="42", chat="club", kind="group")
        await questions(desk, 1, "agent:main:memory:group:club")
        for user, says in (("43", "an operator can"), ("42", "Allowed: pay")):
            press = _press(platform, user)
            await until(lambda press=press: press in platform.answers)
            assert says in platform.answers[press]


async def test_a_press_on_an_answered_question_does_nothing_and_says_so(desk: MemoryDesk) -> None:
    desk.platform.post_message("pay")
    conversation = await questions(desk, 1)
    (asked,) = await desk.world.engine.list_approvals(conversation)
    for label, says in (
        ("Refuse", "Refused: pay"),
        ("Refuse", "Refused: pay"),
        ("Allow", "Too late. Refused: pay"),
    ):
        event = desk.platform.press_button(label)
        await until(lambda event=event: event in desk.platform.answers)
        assert desk.platform.answers[event] == says
    assert desk.platform.outcomes == ["Refused: pay"] * 3
    assert (await desk.world.engine.get_approval(asked.id)).state is ApprovalState.DENIED
    await desk.quiet()
    assert desk.world.tools.ran == {}


async def test_a_press_of_somebody_else_or_from_elsewhere_answers_nothing_and_is_logged(
    desk: MemoryDesk,
) -> None:
    platform = desk.platform
    platform.post_message("pay")
    conversation = await questions(desk, 1)
    (asked,) = await desk.world.engine.list_approvals(conversation)
    own, others = platform.route, platform.build_route("43")
    club = platform.build_route("club", kind="group")
    forged = replace(own, thread="7")
    presses = [
        # A stranger; somebody else who is let in, by a button that was passed on or forged.
        ("66", own, f"yes:{asked.id}"),
        ("43", own, f"yes:{asked.id}"),
        ("43", others, f"yes:{asked.id}"),
        ("42", club, f"always:{asked.id}"),
        ("42", forged, f"yes:{asked.id}"),
        # Buttons that were never shown.
        ("42", own, "yes:apr_none"),
        ("42", own, f"sudo:{asked.id}"),
        ("42", own, f"{asked.id}"),
    ]
    with capture_logs() as logs:
        for n, (user, route, data) in enumerate(presses):
            event = ButtonPressed(
                event=f"forged{n}",
                route=route,
                sender=MessageSender(id=user),
                message="m1",
                data=data,
            )
            platform.add_event(event)
            await until(lambda event=event: event.event in platform.answers)
    assert (await desk.world.engine.get_approval(asked.id)) == asked
    refused = [one["user"] for one in logs if one["event"] == "approval_answer_refused"]
    assert refused == ["66", "43", "43", "42", "42"]
    assert not [one for one in logs if one["event"] == "event_not_taken"]
    # Neither does a command of somebody else there.
    for user in ("43", "66"):
        platform.post_message("/approve", user=user, chat="42")
    platform.press_button("Allow")
    await desk.quiet()
    answered = await desk.world.engine.get_approval(asked.id)
    assert (answered.state, answered.answered_by) == (ApprovalState.APPROVED, "memory:42")


async def test_a_guest_of_an_open_group_answers_nothing_whoever_may(
    tmp_path: Path, platform: MemoryPlatform
) -> None:
    async with memory_desk(
        "sqlite:///clew.db",
        tmp_path,
        platform,
        script=script,
        settings={**_SETTINGS, "open_groups": True},
        flags={"approvals.approvers": "people"},
    ) as desk:
        platform.post_message("pay", user="guest", chat="club", kind="group")
        conversation = await questions(desk, 1, "agent:main:memory:group:club")
        (asked,) = await desk.world.engine.list_approvals(conversation)
        event = _press(platform, "guest")
        await until(lambda: event in platform.answers)
        platform.post_message("/approve", user="guest", chat="club", kind="group")
        platform.post_message("/approve all", user="guest", chat="club", kind="group")
        await until(lambda: desk.waiting() == 0)
        assert (await desk.world.engine.get_approval(asked.id)).state is ApprovalState.OPEN
        await desk.world.engine.request_stop(conversation)


async def test_a_button_that_offers_more_than_was_shown_allows_nothing(
    tmp_path: Path, platform: MemoryPlatform
) -> None:
    async with memory_desk(
        "sqlite:///clew.db",
        tmp_path,
        platform,
        script=script,
        settings=_SETTINGS,
    ) as desk:
        platform.post_message("pay")
        conversation = await questions(desk, 1)
        (asked,) = await desk.world.engine.list_approvals(conversation)
        await desk.world.store.inner.write(
            lambda t: t.execute("UPDATE approval SET offer = NULL WHERE id = $1", asked.id)
        )
        event = ButtonPressed(
            event="forged",
            route=platform.route,
            sender=MessageSender(id="42"),
            message="m1",
            data=f"always:{asked.id}",
        )
        platform.add_event(event)
        await until(lambda: event.event in platform.answers)
        assert (await desk.world.engine.get_approval(asked.id)).state is ApprovalState.OPEN
        assert await desk.world.engine.grants.list_grants(viewer=LOCAL) == []
        await desk.world.engine.request_stop(conversation)


async def test_refusing_with_a_reason_asks_for_it_and_answers_nothing_before(
    desk: MemoryDesk,
) -> None:
    desk.platform.post_message("pay dare")
    conversation = await questions(desk, 2)
    _, second = await desk.world.engine.list_approvals(conversation)
    for _ in range(2):
        event = desk.platform.press_button("Refuse, because …")
        await until(lambda event=event: event in desk.platform.answers)
        assert desk.platform.answers[event] == "Write the reason after /deny."
    await until(lambda: len(desk.platform.list_texts()) == 3)
    assert f"To refuse {second.tool} with a reason" in desk.platform.list_texts()[2]
    assert "/deny 2 REASON" in desk.platform.list_texts()[2]
    assert len(await desk.world.engine.list_approvals(conversation)) == 2
    assert desk.platform.outcomes == []
    desk.platform.post_message("/deny 2 it is too dear")
    await until(lambda: len(desk.platform.list_texts()) == 4)
    answered = await desk.world.engine.get_approval(second.id)
    assert (answered.state, answered.note) == (ApprovalState.DENIED, "it is too dear")
    event = desk.platform.press_button("Refuse, because …")
    await until(lambda: event in desk.platform.answers)
    assert "Refused" in desk.platform.answers[event]
    await desk.world.engine.request_stop(conversation)
    await desk.quiet()


@pytest.mark.both_databases
async def test_always_holds_from_then_on_and_says_what_it_allows(desk: MemoryDesk) -> None:
    desk.platform.post_message("pay dare")
    conversation = await questions(desk, 2)
    first, second = await desk.world.engine.list_approvals(conversation)
    (shown,) = [one for one in desk.platform.messages if f"{first.tool}: any call" in one.text]
    assert f"for an hour or always: {first.tool}: any call" in shown.text
    assert "/approve hour and /approve always allow what the line above says" in shown.text
    assert [label for label, _ in shown.buttons] == [
        *("Allow", "For an hour", "Always", "Refuse", "Refuse, because …")
    ]
    desk.platform.post_message("/approve 1 always")
    desk.platform.post_message("/deny 2 there is no money left")
    await desk.quiet()
    assert [name.split()[0] for name in desk.world.tools.ran] == [first.tool]
    told = await desk.world.shape(conversation)
    assert any("not approved: there is no money left" in one for one in told)
    desk.platform.post_message(first.tool)
    await desk.quiet()
    assert sum(desk.world.tools.ran.values()) == 2
    desk.platform.post_message("/grants")
    desk.platform.post_message("/why 1")
    desk.platform.post_message("/revoke 1")
    await until(lambda: "Such calls ask again" in desk.platform.list_texts()[-1])
    grants, why, revoked = desk.platform.list_texts()[-3:]
    assert grants.startswith(f"1. {first.tool}: any call, always, by memory:42 on ")
    assert why.startswith(f'{first.tool} {{"what":"bread"}} (ok): grant grt_')
    assert revoked == f"Taken back: {first.tool}: any call. Such calls ask again."
    desk.platform.post_message(second.tool)
    await questions(desk, 3)
    event = desk.platform.press_button("For an hour")
    await until(lambda: event in desk.platform.answers)
    await desk.quiet()
    (grant,) = await desk.world.engine.grants.list_grants(viewer=LOCAL)
    assert (grant.conversation_id, grant.from_approval is not None) == (conversation, True)


async def test_a_turn_without_a_person_asks_in_its_owners_chat_and_goes_on_after_a_restart(
    store_url: str, tmp_path: Path, platform: MemoryPlatform
) -> None:
    async with memory_desk(store_url, tmp_path, platform, script=script) as desk:
        due = replace(desk.world.engine.new_input("pay"), payload=json.dumps({"unattended": True}))
        await desk.world.engine.submit(due, target=platform.route)
        await questions(desk, 1)
    async with memory_desk(store_url, tmp_path, platform, script=script) as desk:
        platform.post_message("/approve")
        await desk.quiet()
        assert [name.split()[0] for name in desk.world.tools.ran] == ["pay"]
        assert await desk.world.check() == []


async def test_what_a_person_allowed_ends_when_they_are_shut_out(desk: MemoryDesk) -> None:
    desk.platform.post_message("pay", user="43")
    key = desk.platform.route.key.replace("42", "43")
    await questions(desk, 1, key)
    desk.platform.post_message("/approve always", user="43")
    await desk.quiet()
    (grant,) = await desk.world.engine.grants.list_grants(viewer=LOCAL)
    assert grant.by == "memory:43"
    account = ChannelAccount(channel="memory", account="bot")
    await desk.world.engine.pairing.revoke_access(account, "43", to=AccessStatus.REMOVED, by="me")
    assert await desk.world.engine.grants.list_grants(viewer=LOCAL) == []


def _press(platform: MemoryPlatform, user: str) -> str:
    """As ``press``, in the group."""
    (message,) = [one for one in platform.messages if one.buttons]
    return platform.press_button(
        "Allow", user=user, route=platform.build_route(message.chat, kind="group")
    )


# Over JSON-RPC


async def test_over_json_rpc_the_first_answer_counts_and_stale_ids_answer_nothing(
    store_url: str, tmp_path: Path
) -> None:
    async with open_world(store_url, tmp_path) as world:
        office = OperationContext(
            operations=BUILTIN_OPERATIONS,
            engine=world.engine,
            settings=settings_for(tmp_path),
            may_configure=True,
        )

        async def serve(frames: AsyncIterator[str], send: Callable[[str], Awaitable[None]]) -> None:
            await serve_client(office, frames, send)

        accepted = await world.say("a: pay")
        asked = await world.question(accepted.conversation_id)
        async with client(in_process(serve)) as one:

            async def respond(approval: str, *, approve: bool) -> str:
                given = RespondParams(approval=approval, approve=approve)
                return (await one.call(methods.RESPOND, given)).state

            with pytest.raises(CallFailed) as stale:
                await respond("apr_gone", approve=True)
            assert stale.value.code == ErrorCode.NOT_FOUND
            assert await respond(asked.id, approve=False) == "denied"
            assert await respond(asked.id, approve=False) == "denied"
            with pytest.raises(CallFailed) as late:
                await respond(asked.id, approve=True)
            assert late.value.code == ErrorCode.CONFLICT
        await world.end(accepted)
        assert world.tools.ran == {}
        assert await world.check() == []


# Display


def approval(args: str) -> Approval:
    now = SystemClock().now()
    return Approval(
        id=ApprovalId("apr_1"),
        conversation_id=ConversationId("cnv_1"),
        turn_id=TurnId("trn_1"),
        step=1,
        call_id="c",
        tool="shell",
        args=args,
        route=None,
        state=ApprovalState.OPEN,
        asked_at=now,
        expires_at=now,
        answered_by=None,
        note=None,
    )


def _telegram(chunk: str) -> str:
    return json.loads(chunk)["text"]


def _discord(chunk: str) -> str:
    return _without_fences(json.loads(chunk)["content"])


def _slack(chunk: str) -> str:
    rich = [block for block in json.loads(chunk)["blocks"] if block["type"] == "rich_text"]
    elements = [element for block in rich for element in block["elements"]]
    return "\n".join("".join(each["text"] for each in one["elements"]) for one in elements)


def _webhook(chunk: str) -> str:
    return _without_fences(json.loads(chunk)["text"])


def _without_fences(text: str) -> str:
    # A sign that is not seen stands within three backticks, so that they end nothing.
    text = text.replace("\u2060", "")
    return "\n".join(line for line in text.split("\n") if not line.startswith("```"))


RENDER: dict[str, tuple[Callable[[Any], Sequence[str]], Callable[[str], str]]] = {
    "telegram": (telegram_codec.render, _telegram),
    "discord": (discord_codec.render, _discord),
    "slack": (slack_codec.render, _slack),
    "webhook": (lambda message: webhook_codec.render(message, longest=4000), _webhook),
}
COMMANDS = (
    "red " * 120 + "; rm -rf ~",
    "echo `date` ```rm -rf /``` ~~~ x",
    "  two  blanks\n\n\ttabs\n``` \nrm -rf ~\n```\n**bold** <@1> @everyone https://e.x [a](b)",
    "x" * 9_000 + " " * 700 + "; rm -rf ~",
    "\n" * 900 + "rm -rf ~",
    "a\u202eb\u200bc\u2066d",
)


@pytest.mark.parametrize("name", RENDER)
def test_a_question_shows_all_of_what_would_run_and_nothing_in_it_ends_the_code(name: str) -> None:
    render, read = RENDER[name]
    chance = random.Random(1)
    signs = [
        "`",
        "```",
        "\n",
        " ",
        "  ",
        "\t",
        "*",
        "_",
        "~~~",
        "<",
        "&",
        "|",
        "rm -rf ~",
        "\\",
        "😀",
    ]
    random_ = ["".join(chance.choices(signs, k=chance.randint(1, 400))) for _ in range(60)]
    for command in (*COMMANDS, *random_):
        args = json.dumps({"command": command}, ensure_ascii=False)
        chunks = render(format_question(approval(args)))
        shown = "".join(read(chunk) for chunk in chunks)
        # Only line breaks are where one message ends and the next begins.
        assert escape_invisible(args).replace("\n", "") in shown.replace("\n", ""), command[:60]
        assert json.loads(escape_invisible(args)) == {"command": command}
        assert (
            ("buttons" in chunks[-1]) or ("components" in chunks[-1]) or ("actions" in chunks[-1])
        )


def test_an_invisible_character_is_written_as_an_escape() -> None:
    text = format_question(
        approval(json.dumps({"x": "a\u202eb\u200b\ufeff\U000e0041"}, ensure_ascii=False))
    ).text
    assert '"a\\u202eb\\u200b\\ufeff\\udb40\\udc41"' in text
