"""Slack: everything that people send, everything that is sent to them, and what goes wrong."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pytest
from pydantic_ai.messages import ModelResponse, ToolCallPart
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from clew.config.secret import Secret
from clew.core.channel_events import OutboundMessage
from clew.core.health import ChannelState
from clew.core.route import Route
from clew.errors import AccountRefused, NotDelivered, OutcomeUnknown, SettingsError, Throttled
from clew.gateway.channel import ChannelConfig
from clew.gateway.channels.slack.channel import open_channel
from clew.testing.slack import FakeSlack
from clew.testing.telegram import FaultInjector
from tests.channels.desk import Plain, echo, serving, table, until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage
    from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
    from slack_sdk.socket_mode.request import SocketModeRequest

    from tests.line.world import World

CHANNEL = "C100"
ME = "<@U0CLEW>"


def pay_or_echo(messages: Sequence[ModelMessage]) -> ModelResponse:
    answer = echo(messages)
    if (answer.text or "").endswith("pay"):
        return ModelResponse(parts=[ToolCallPart("pay", {"what": "`rm -rf` <!channel>"})])
    return answer


@dataclass(frozen=True, kw_only=True)
class SlackDesk(Plain):
    world: World
    slack: FakeSlack

    def texts(self, chat: int = 42) -> list[str]:
        return self.slack.list_texts(f"D{chat}")

    def waiting(self) -> int:
        return self.slack.pending_count


@asynccontextmanager
async def open_desk(
    url: str, home: Path, slack: FakeSlack, **settings: object
) -> AsyncGenerator[SlackDesk]:
    own = {
        "token": slack.token,
        "app_token": slack.app_token,
        "base_url": slack.api_url,
        "allow": "U42",
        "groups": CHANNEL,
        "stream": False,
        **settings,
    }
    async with serving(url, home, table("slack", own), script=pay_or_echo) as world:
        yield SlackDesk(world=world, slack=slack)
        assert await world.check() == []


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/clew.db"


@pytest.fixture
async def desk(url: str, tmp_path: Path) -> AsyncGenerator[SlackDesk]:
    with FakeSlack() as slack:
        async with open_desk(url, tmp_path, slack) as found:
            yield found


async def test_a_burst_is_one_question_and_an_edit_of_it_is_asked_again(desk: SlackDesk) -> None:
    desk.slack.post_message("one &amp; <https://e.x/|two>")
    ts = desk.slack.post_message("three")
    assert await desk.answered() == ["You said: one & two (https://e.x/) | three"]
    desk.slack.edit_message(ts, "four")
    answers = await desk.answered(2)
    assert answers[1] == "You said: one & two (https://e.x/) | four"
    # A preview of a link is told as a change, too.
    unchanged = {"text": "four", "user": "U42", "ts": ts}
    change = {"type": "message", "subtype": "message_changed", "channel": "D42", "ts": "1.1"}
    desk.slack.send_event({**change, "message": unchanged, "previous_message": unchanged})
    desk.slack.delete_message(ts)
    await desk.quiet()
    assert len(desk.texts()) == 2


async def test_a_mention_begins_a_thread_and_its_conversation_continues_there(
    desk: SlackDesk,
) -> None:
    desk.slack.post_message("between us", channel=CHANNEL)
    ts = desk.slack.post_message(f"{ME}, hello", channel=CHANNEL)
    await until(lambda: desk.slack.list_texts(CHANNEL))
    desk.slack.post_message("not for you", channel=CHANNEL, thread_ts=ts)
    desk.slack.post_message(f"and again {ME}", channel=CHANNEL, thread_ts=ts)
    desk.slack.post_message("for you", channel=CHANNEL, thread_ts="1.5", parent_user_id="U0CLEW")
    await until(lambda: len(desk.slack.list_texts(CHANNEL)) == 3)
    await desk.quiet()
    assert sorted(desk.slack.list_texts(CHANNEL)) == [
        "You said: Ada (U42): and again @you",
        "You said: Ada (U42): for you",
        "You said: Ada (U42): hello",
    ]
    assert {one.thread for one in desk.slack.messages} == {ts, "1.5"}
    assert len((await desk.world.engine.list_conversations()).items) == 2


async def test_slash_commands_are_carried_out_once_and_answered(url: str, tmp_path: Path) -> None:
    # Told again and again, as if the acknowledgements were lost.
    with FakeSlack(faults=FaultInjector(duplicated=0.6, seed=3), patience=0.05) as slack:
        async with open_desk(url, tmp_path, slack) as desk:
            slack.send_command("/clew", "title The talk")
            slack.send_command("/clew")
            slack.send_command("/nonsense", "x")
            texts = await desk.answered(3)
            await desk.quiet()
            assert len(desk.texts()) == 3
            assert "/compress" in "".join(texts)
            assert "/nonsense" in "".join(texts)


async def test_a_button_lets_a_tool_run_once_and_goes_away(desk: SlackDesk) -> None:
    desk.slack.post_message("pay")
    await until(lambda: any(one.buttons for one in desk.slack.messages))
    (asked,) = [one for one in desk.slack.messages if one.buttons]
    assert "<!channel>" not in asked.text
    label = asked.buttons[0]["text"]["text"]
    desk.slack.press_button(label, user="U99")
    await until(lambda: desk.slack.ephemeral_messages)
    assert asked.buttons
    desk.slack.press_button(label)
    await until(lambda: not asked.buttons)
    assert asked.context_texts == ["Allowed: pay"]
    await desk.answered(2)
    await desk.quiet()
    assert {user for _, user, _ in desk.slack.ephemeral_messages} == {"U42", "U99"}


async def test_files_are_fetched_from_slack_and_from_nowhere_else(desk: SlackDesk) -> None:
    here = desk.slack.add_file("note.txt", b"milk")
    large = desk.slack.add_file("large.bin", b"x" * 100)
    large |= {"size": 30_000_000}
    elsewhere = desk.slack.add_file("else.txt", b"x")
    elsewhere["url_private_download"] = "http://e.example/x"
    desk.slack.post_message("these", files=[here, large, elsewhere], subtype="file_share")
    (answer,) = await desk.answered()
    assert "note.txt, text/plain, 4 bytes" in answer
    assert "30,000,000 bytes" in answer
    assert "not at Slack" in answer
    await desk.quiet()


async def test_blocks_that_slack_refuses_are_sent_as_plain_text(desk: SlackDesk) -> None:
    desk.slack.refuse_blocks = True
    desk.slack.post_message("a *b* &lt;!here&gt;")
    assert await desk.answered() == ["You said: a b <!here>"]
    assert "&lt;!here&gt;" in desk.slack.messages[0].text
    await desk.quiet()


async def test_an_answer_grows_in_its_place(url: str, tmp_path: Path) -> None:
    with FakeSlack() as slack:
        async with open_desk(url, tmp_path, slack, stream=True) as desk:
            go_on = asyncio.Event()

            async def wait() -> None:
                await go_on.wait()

            desk.world.points.arm("piece 'said:'", wait)
            slack.post_message("hello")
            await until(lambda: desk.texts() == ["You said: …"])
            go_on.set()
            await desk.answered()
            await desk.quiet()
            (message,) = slack.messages
            assert message.texts == ["You said: …", "You said: hello"]


# Failures


async def test_an_unacknowledged_message_is_answered_once_after_a_restart(
    store_url: str, tmp_path: Path
) -> None:
    with FakeSlack() as slack:
        slack.post_message("hello")
        for _ in range(2):
            async with open_desk(store_url, tmp_path, slack) as desk:
                await desk.answered()
                await desk.quiet()
        assert slack.list_texts("D42") == ["You said: hello"]


async def test_a_socket_that_slack_renews_or_that_breaks_loses_nothing(desk: SlackDesk) -> None:
    desk.slack.post_message("one")
    await desk.answered()
    desk.slack.request_reconnect()
    await until(lambda: desk.slack.opened == 2)
    desk.slack.post_message("two")
    await desk.answered(2)
    desk.slack.cut_sockets()
    desk.slack.post_message("three")
    texts = await desk.answered(3)
    assert texts == ["You said: one", "You said: two", "You said: three"]
    desk.slack.send_event({"type": "message", "channel": None})
    await desk.quiet()
    desk.slack.request_reconnect("link_disabled")
    health = desk.world.engine.channels
    await until(lambda: health["slack"].state is ChannelState.REFUSED)
    assert "socket mode is off" in (health["slack"].error or "")


async def test_a_bad_day_loses_nothing_and_repeats_nothing(url: str, tmp_path: Path) -> None:
    """Cut connections, lost answers, waits, repeated envelopes: Slack is asked what arrived."""
    faults = FaultInjector(
        cut=0.08, lost=0.1, throttled=0.05, broken=0.05, duplicated=0.2, reordered=0.5, seed=2
    )
    with FakeSlack(faults=faults, patience=0.3) as slack:
        for number in range(2):
            for user in range(1, 7):
                slack.post_message(f"message {number} of {user}", user=f"U{user}")
        async with open_desk(url, tmp_path, slack, allow="*", double_text="queue") as desk:
            await desk.quiet()
            assert await desk.world.engine.deliveries.list_deliveries() == []
        assert slack.intrusions == 0
        for user in range(1, 7):
            wanted = [f"You said: message {number} of {user}" for number in range(2)]
            assert slack.list_texts(f"D{user}") == wanted


async def test_tokens_that_slack_rejects_are_reported_without_the_tokens(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeSlack() as slack:
        for wrong in ({"token": "xoxb-other-one"}, {"app_token": "xapp-1-A0FAKE-1-other"}):
            async with open_desk(url, tmp_path, slack, **wrong) as desk:
                health = desk.world.engine.channels
                await until(lambda: health["slack"].state is ChannelState.REFUSED)  # noqa: B023
                assert "does not know the token" in (health["slack"].error or "")
    out, err = capsys.readouterr()
    assert "other" not in (out + err).replace("another", "")


ERRORS: Mapping[str, type[Exception]] = {
    "is_archived": NotDelivered,
    "not_in_channel": NotDelivered,
    "fatal_error": OutcomeUnknown,
    "service_unavailable": OutcomeUnknown,
    "token_revoked": AccountRefused,
    "ratelimited": Throttled,
}


async def test_each_error_of_slack_is_what_it_means() -> None:
    route = Route(platform="slack", kind="dm", chat="D42")
    with FakeSlack() as slack:
        slack.open_dm("U42")
        options = {"app_token": Secret.from_text(slack.app_token)}
        config = ChannelConfig(
            name="slack",
            token=Secret.from_text(slack.token),
            base_url=slack.api_url,
            options=options,
        )
        async with open_channel(config) as channel:
            (chunk,) = channel.render(OutboundMessage(text="hello"))
            for name in ERRORS:
                slack.refuse_chat("D42", name)
                found = await asyncio.gather(
                    channel.send(route, chunk, key="k"), return_exceptions=True
                )
                assert [type(error) for error in found] == [ERRORS[name]]


@pytest.mark.parametrize(
    ("token", "options", "says"),
    [
        (None, {}, "token is not the token of a Slack bot"),
        ("xoxb-1", {}, "app_token is not the token"),
        ("xoxb-1", {"app_token": Secret.from_text("xoxb-2")}, "app_token is not the token"),
        ("xoxb-1", {"signing": "x"}, "no setting signing"),
    ],
)
def test_settings_that_cannot_be_used_say_which_and_why(
    token: str | None, options: Mapping[str, object], says: str
) -> None:
    secret = None if token is None else Secret.from_text(token)
    with pytest.raises(SettingsError, match=says):
        open_channel(ChannelConfig(name="slack", token=secret, base_url=None, options=options))


async def test_the_official_client_finds_nothing_odd_about_the_fake() -> None:
    with FakeSlack() as slack:
        web: Any = AsyncWebClient(slack.token, base_url=slack.api_url)
        client = SocketModeClient(app_token=slack.app_token, web_client=web)
        heard: list[str] = []

        async def answer(client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
            payload = cast("dict[str, Any]", request.payload)  # pyright: ignore[reportUnknownMemberType]
            heard.append(payload["event"]["text"])
            response = SocketModeResponse(envelope_id=request.envelope_id)
            await client.send_socket_mode_response(response)
            await web.chat_postMessage(channel="D42", text=f"heard {heard[-1]}")

        client.socket_mode_request_listeners.append(answer)
        await client.connect()
        slack.post_message("hello")
        await until(lambda: slack.list_texts("D42") == ["heard hello"])
        await until(lambda: slack.pending_count == 0)
        await client.close()
