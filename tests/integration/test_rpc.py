"""JSON-RPC at a real server: several clients at once, slow ones, and who is let in."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from clew.api.builtin_operations import BUILTIN_OPERATIONS
from clew.api.operation_context import OperationContext
from clew.api.rpc.connection import serve_client
from clew.api.rpc.subscriptions import ClientDisconnected
from clew.api.timeouts import ApiTimeouts
from clew.core.ids import ConversationId
from clew.core.scope import Scope
from clew.core.session import TUI_CLOSE
from clew.testing import Fail, FakeProvider, Text, count_user_texts, reply_in_sequence
from clew.tui.client import ConnectionRefused, RpcClient
from clew.tui.transports import websocket
from clew.wire import methods
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.event_models import DeltaNotice, SnapshotNotice
from clew.wire.framing import MAX_FRAME_BYTES
from clew.wire.models import SpanShape
from clew.wire.params import (
    Attachment,
    BranchParams,
    CancelParams,
    CompactParams,
    CompleteParams,
    ConfigGetParams,
    ConfigSetParams,
    EditParams,
    EntriesParams,
    ListParams,
    ModelListParams,
    ModelSetParams,
    Named,
    NewParams,
    OpenParams,
    RenameParams,
    ResultParams,
    ResumeParams,
    RewindParams,
    RunParams,
    SearchParams,
    SubmitParams,
    SubscribeParams,
    UndeleteParams,
    UndoParams,
)
from tests.integration.api_server import TOKEN, always, running, settings_for
from tests.integration.rpc_clients import (
    client,
    over_pipe,
    over_socket,
    socket_url,
    until_closed,
    until_told,
)
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    from clew.wire.event_models import AnyNotice
    from clew.wire.params import DoubleTextName
    from tests.integration.api_server import Server

SLOW = Text("one two three four five six", chunks=6, delay=0.1)
#: Longer than a busy machine needs to say something in the middle of it.
LASTING = Text("one two three four five six", chunks=6, delay=1.0)


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(count_user_texts) as fake:
        yield fake


@pytest.fixture
async def server(tmp_path: Path, provider: FakeProvider) -> AsyncGenerator[Server]:
    async with running(settings_for(tmp_path, provider=provider)) as found:
        yield found


@pytest.fixture
async def on_each(store_url: str, tmp_path: Path, provider: FakeProvider) -> AsyncGenerator[Server]:
    settings = settings_for(tmp_path, provider=provider, store_url=store_url)
    async with running(settings) as found:
        yield found


async def opened(one: RpcClient, name: str = "talk") -> str:
    return (await one.call(methods.OPEN, OpenParams(conversation=name))).conversation.id


def entries(told: list[AnyNotice]) -> list[tuple[str | None, str]]:
    return [(notice.role, notice.text) for notice in told if notice.type == "entry"]


async def both_hear(
    server: Server, rule: DoubleTextName, turns: int
) -> tuple[list[AnyNotice], list[AnyNotice]]:
    """Return the events of two clients while one steers the other's turn."""
    async with client(over_socket(server)) as one, client(over_pipe(server)) as two:
        conversation = await opened(one)
        assert await opened(two) == conversation
        async with one.follow(conversation) as first, two.follow(conversation) as second:
            # They listen once they were told where the conversation stands.
            await until_told(first, "state")
            await until_told(second, "state")
            await one.submit("talk", "first")
            await until_told(second, "delta", "snapshot")
            await two.submit("talk", "second", double_text=rule)
            return await until_closed(first, turns), await until_closed(second, turns)


async def test_a_message_typed_while_anothers_turn_runs_waits_for_its_own_turn(
    on_each: Server, provider: FakeProvider
) -> None:
    provider.script = always(SLOW)
    first, second = await both_hear(on_each, "queue", 2)
    assert entries(first) == [
        ("user", "first"),
        ("assistant", SLOW.text),
        ("user", "second"),
        ("assistant", SLOW.text),
    ]
    told = [(notice.seq, notice.type) for notice in second if notice.type == "entry"]
    assert told == [(seq, "entry") for seq in (2, 3, 4)]
    queues = [notice.state.queue for notice in first if notice.type == "state"]
    assert ["second"] in [[item.text for item in queue] for queue in queues]


async def test_a_message_that_interrupts_stops_anothers_turn_and_keeps_its_text(
    server: Server, provider: FakeProvider
) -> None:
    provider.script = reply_in_sequence([LASTING], SLOW)
    first, _ = await both_hear(server, "interrupt", 2)
    closed = [notice.outcome for notice in first if notice.type == "turn_closed"]
    assert closed == ["cancelled", "answered"]
    assert [text for role, text in entries(first) if role == "user"] == ["first", "second"]


async def test_a_message_whose_rule_is_reject_is_refused_while_a_turn_runs(
    server: Server, provider: FakeProvider
) -> None:
    provider.script = always(LASTING)
    with pytest.raises(CallFailed) as caught:
        await both_hear(server, "reject", 1)
    assert caught.value.code == ErrorCode.REJECTED


async def test_a_waiting_input_can_be_edited_and_cancelled(
    on_each: Server, provider: FakeProvider
) -> None:
    provider.script = always(SLOW)
    async with client(over_socket(on_each)) as one:
        conversation = await opened(one)
        async with one.follow(conversation) as events:
            for text in ("first", "secnod", "third"):
                await one.submit("talk", text)
            await on_each.begun()
            listed = await one.call(methods.QUEUE, Named(conversation="talk"))
            second, third = listed.items[-2:]
            edited = EditParams(inbox_id=second.inbox_id, text="second")
            assert (await one.call(methods.EDIT, edited)).edited
            back = await on_each.engine.queue_rewind(ConversationId(conversation), to=0)
            wrong = EditParams(inbox_id=back.inbox_id, text="undo")
            assert not (await one.call(methods.EDIT, wrong)).edited, "it is no message"
            taken_back = CancelParams(inbox_id=back.inbox_id)
            assert (await one.call(methods.CANCEL, taken_back)).cancelled
            taken = CancelParams(inbox_id=third.inbox_id)
            assert (await one.call(methods.CANCEL, taken)).cancelled
            assert not (await one.call(methods.CANCEL, taken)).cancelled
            told = await until_closed(events, 2)
            assert [text for role, text in entries(told) if role == "user"] == ["first", "second"]
            assert not (await one.call(methods.EDIT, edited)).edited


async def test_a_message_that_is_sent_again_with_its_key_is_stored_once(on_each: Server) -> None:
    given = SubmitParams(session_id="talk", text="hello", key="k")
    async with client(over_socket(on_each)) as one, client(over_socket(on_each)) as two:
        first = await one.call(methods.SUBMIT, given)
        again = await two.call(methods.SUBMIT, given)
        assert again.inbox_id == first.inbox_id
        # Another session of the same conversation is the same message.
        by_id = SubmitParams(session_id=first.session, text="hello", key="k")
        assert (await two.call(methods.SUBMIT, by_id)).inbox_id == first.inbox_id
        with pytest.raises(CallFailed) as caught:
            await one.call(methods.SUBMIT, SubmitParams(session_id="talk", text="bye", key="k"))
        assert caught.value.code == ErrorCode.KEY_REUSED
        ends = [await each.await_result(first.inbox_id) for each in (one, two)]
        assert ends[0] == ends[1]
        assert (ends[0].outcome, ends[0].turn_outcome) == ("turn", "answered")


async def test_requests_of_one_client_are_stored_in_the_order_in_which_it_sends_them(
    server: Server,
) -> None:
    async with connect(socket_url(server), open_timeout=120, additional_headers=_bearer()) as wire:
        for n in range(30):
            given = {"session_id": "talk", "text": f"{n}"}
            await wire.send(_request(n, "prompt.submit", given))
        answers = [json.loads(await wire.recv()) for _ in range(30)]
    by_id = {answer["id"]: answer["result"]["inbox_id"] for answer in answers}
    stored = await server.store.read(lambda t: t.fetch_all("SELECT id FROM inbox ORDER BY n"))
    assert [by_id[n] for n in range(30)] == [id_ for (id_,) in stored]


@pytest.mark.both_databases
async def test_everything_about_conversations_can_be_done(on_each: Server) -> None:
    async with client(over_pipe(on_each)) as one:
        conversation = await opened(one)
        async with one.follow(conversation) as events:
            for text in ("one", "two", "three"):
                await one.submit("talk", text)
            await until_closed(events, 3)
        page = await one.call(methods.ENTRIES, EntriesParams(conversation="talk", limit=2))
        assert ([entry.seq for entry in page.items], page.next) == ([1, 2], "2")
        page = await one.call(
            methods.ENTRIES, EntriesParams(conversation="talk", before=6, limit=2)
        )
        assert ([entry.seq for entry in page.items], page.next) == ([4, 5], "4")
        undone = await one.call(methods.UNDO, UndoParams(conversation="talk"))
        assert undone.text == "three"
        back = await one.call(methods.REWIND, RewindParams(conversation="talk", to=2))
        retried = await one.call(methods.RETRY, Named(conversation="talk"))
        assert retried.text == "one"
        assert back.session != retried.session
        # One after the other they have gone back to the beginning.
        state = (await one.call(methods.STATUS, Named(conversation="talk"))).state
        assert state.taken_back == [SpanShape(first=1, last=6)]
        copy = await one.call(methods.BRANCH, BranchParams(conversation="talk", name="copy"))
        assert copy.routes == ["agent:main:local:copy"]
        new = await one.call(methods.NEW, NewParams(name="talk", title="Afresh"))
        assert new.conversation.id not in (conversation, copy.id)
        again = await one.call(methods.RESUME, ResumeParams(name="talk", conversation=conversation))
        assert again.conversation.id == conversation
        hits = await one.call(methods.SEARCH, SearchParams(query="three"))
        assert hits.items[0].conversation == conversation
        listed = await one.call(methods.LIST, ListParams())
        assert {each.id for each in listed.items} >= {conversation, copy.id}
        preview = CompactParams(session_id="talk", dry_run=True)
        assert not (await one.call(methods.COMPACT, preview)).moved
        await one.call(methods.DELETE, Named(conversation=copy.id))
        with pytest.raises(CallFailed) as caught:
            await one.call(methods.STATUS, Named(conversation=copy.id))
        assert caught.value.code == ErrorCode.NOT_FOUND
        back = await one.call(methods.UNDELETE, UndeleteParams(conversation=copy.id))
        assert (back.id, back.entries) == (copy.id, copy.entries)
        with pytest.raises(CallFailed) as caught:
            await one.call(methods.UNDELETE, UndeleteParams(conversation=copy.id))
        assert caught.value.code == ErrorCode.NOT_FOUND


async def test_a_follower_learns_that_the_conversation_is_deleted(server: Server) -> None:
    async with client(over_socket(server)) as one, client(over_socket(server)) as two:
        conversation = await opened(one)
        async with one.follow(conversation) as events:
            await two.call(methods.DELETE, Named(conversation=conversation))
            told = [notice async for notice in events]
    assert getattr(told[-1], "type", None) == "deleted"


async def test_commands_completion_settings_and_models(server: Server, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("", encoding="utf-8")
    (tmp_path / "nested").mkdir()
    async with client(over_pipe(server)) as one:
        await opened(one)
        reply = await one.call(methods.RUN, RunParams(text="/title Rome", conversation="talk"))
        assert reply.text == "This conversation is called: Rome"
        found = await one.call(methods.COMPLETE, CompleteParams(text="/ti"))
        assert [item.text for item in found.items] == ["/title "]
        text = "look at @n and more"
        asked = CompleteParams(text=text, cursor=10, folder=str(tmp_path))
        found = await one.call(methods.COMPLETE, asked)
        assert [(item.text, item.kind) for item in found.items] == [
            ("nested/", "folder"),
            ("notes.txt", "file"),
        ]
        assert text[found.start : found.end] == "n"
        settings = await one.call(methods.CONFIG_GET, ConfigGetParams(key="api.token"))
        assert settings.items[0].value == "********"
        given = ConfigSetParams(key="session.reset", value="daily")
        written = await one.call(methods.CONFIG_SET, given)
        assert 'reset = "daily"' in (tmp_path / "config.toml").read_text(encoding="utf-8")
        assert written.restart
        assert "session.reset is written to" in written.note
        assert "start it again" in written.note
        with pytest.raises(CallFailed, match=r"session\.reset"):
            await one.call(methods.CONFIG_SET, ConfigSetParams(key="session.reset", value="weekly"))
        chosen = ModelSetParams(conversation="talk", model="offline")
        assert (await one.call(methods.SET_MODEL, chosen)).current == "offline"
        models = await one.call(methods.MODELS, ModelListParams(conversation="talk"))
        assert (models.items, models.current) == (["openai-chat:fake-model", "offline"], "offline")


def _file(name: str, content: bytes) -> Attachment:
    data = base64.b64encode(content).decode()
    return Attachment(name=name, media_type="application/octet-stream", data=data)


@pytest.mark.both_databases
async def test_the_content_of_files_reaches_the_model_and_is_kept(
    on_each: Server, provider: FakeProvider
) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(20)
    async with client(over_socket(on_each)) as one:
        conversation = await opened(one)
        file = Attachment(name="a.txt", media_type="text/plain", data="aGVsbG8=")
        # The media type that a sender states does not count.
        files = [file, _file("photo", picture), _file("song", b"\xff\xfb\x90")]
        async with one.follow(conversation) as events:
            await one.submit("talk", "look at this", attachments=files)
            told = await until_closed(events)
            # Asked again, they come along again, and are named once.
            await one.call(methods.RETRY, Named(conversation="talk"))
            again = await until_closed(events)
            await one.submit("talk", "and now?")
            await until_closed(events)
            # Where a model reads no images the error says so: later requests would fail too.
            provider.script = reply_in_sequence([], default=Fail("unknown_model"))
            await one.submit("talk", "can you see it?")
            failed = await until_closed(events)
            provider.script = count_user_texts
        copy = await one.call(methods.BRANCH, BranchParams(conversation="talk", name="copy"))
        await one.call(methods.DELETE, Named(conversation=conversation))
        async with one.follow(copy.id) as events:
            await one.submit("copy", "still there?")
            await until_closed(events)
        large = _file("big", picture + bytes(5_000_000))
        with pytest.raises(CallFailed, match="the limit for a picture is 5,000,000 bytes"):
            await one.submit("copy", "this?", attachments=[large])
    asked = [request.json["messages"] for request in provider.requests if request.json]
    shown = json.dumps(asked[0])
    assert "hello\\n[end of a.txt]" in shown
    assert f"data:image/png;base64,{base64.b64encode(picture).decode()}" in shown
    assert "song, application/octet-stream, 3 bytes, told by name only]" in shown
    assert any("set model.pictures to false" in text for _, text in entries(failed))
    # Later requests begin with the same, to the letter; a branch has it when the source is gone.
    assert [each[0] for each in asked[1:]] == [asked[0][0]] * 4
    (said, *_) = [text for role, text in entries(told) if role == "user"]
    assert [text for role, text in entries(again) if role == "user"] == [said]
    assert said.startswith("look at this\n[file att_")
    assert "a.txt, text/plain, 5 bytes]" in said


async def test_another_scope_sees_and_changes_nothing(server: Server) -> None:
    stranger = Scope("person:telegram:dm:42")
    async with (
        client(over_pipe(server)) as owner,
        client(over_pipe(server, viewer=stranger)) as other,
    ):
        conversation = await opened(owner)
        sent = await owner.submit("talk", "secret")
        assert (await other.call(methods.LIST, ListParams())).items == []
        assert (await other.call(methods.SEARCH, SearchParams(query="secret"))).items == []
        calls: list[tuple[Any, Any]] = [
            (methods.OPEN, OpenParams(conversation=conversation)),
            (methods.OPEN, OpenParams(conversation="new")),
            (methods.OPEN, OpenParams(conversation="new", title="x")),
            (methods.NEW, NewParams(name="talk")),
            (methods.STATUS, Named(conversation="talk")),
            (methods.RENAME, RenameParams(conversation="talk", title="Mine")),
            (methods.RENAME, RenameParams(conversation="new", title="Mine")),
            (methods.SUBMIT, SubmitParams(session_id=sent.session, text="hello")),
            (methods.SUBMIT, SubmitParams(session_id="new", text="hello")),
            (methods.INTERRUPT, Named(conversation="talk")),
            (methods.CANCEL, CancelParams(inbox_id=sent.inbox_id)),
            (methods.EDIT, EditParams(inbox_id=sent.inbox_id, text="x")),
            (methods.RESULT, ResultParams(inbox_id=sent.inbox_id)),
            (methods.RUN, RunParams(text="/status", conversation="talk")),
            (methods.SUBSCRIBE, SubscribeParams(conversation=conversation)),
            (methods.DELETE, Named(conversation="talk")),
        ]
        for method, params in calls:
            with pytest.raises(CallFailed) as caught:
                await other.call(method, params)
            assert caught.value.code == ErrorCode.NOT_FOUND, method.name


def _bearer(token: str = TOKEN) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _request(id_: int, method: str, params: dict[str, Any]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})


async def test_a_client_that_does_not_read_slows_no_turn_and_misses_nothing(
    server: Server, provider: FakeProvider
) -> None:
    provider.script = always(Text("x" * 700_000, chunks=20))
    place = urlsplit(server.url)
    # Next to nothing waits in the machine's own buffers.
    small = socket.socket()
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    small.connect((place.hostname, place.port))
    async with (
        connect(
            socket_url(server),
            open_timeout=120,
            sock=small,
            additional_headers=_bearer(),
            max_queue=1,
            close_timeout=0.1,
            max_size=MAX_FRAME_BYTES,
        ) as slow,
        client(over_pipe(server)) as quick,
    ):
        conversation = await opened(quick)
        await slow.send(_request(1, "events.subscribe", {"conversation": conversation}))
        assert json.loads(await slow.recv())["result"]["seq"] == 0
        async with quick.follow(conversation) as events:
            for n in range(3):
                # The slow one has read nothing of it.
                await quick.submit("talk", f"say {n}")
                await until_closed(events)
        small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_000_000)
        seqs: list[int] = []
        while len(seqs) < 6:
            told = json.loads(await slow.recv())["params"]
            seqs += [told["seq"]] if told["type"] == "entry" else []
        assert seqs == [1, 2, 3, 4, 5, 6]


async def test_a_late_subscriber_gets_the_text_so_far(
    server: Server, provider: FakeProvider
) -> None:
    provider.script = always(SLOW)
    async with client(over_socket(server)) as one, client(over_socket(server)) as two:
        conversation = await opened(one)
        async with one.follow(conversation) as events:
            await one.submit("talk", "hello")
            await until_told(events, "delta", "snapshot")
            async with two.follow(conversation, after=1) as late:
                told = await until_closed(late)
    texts = [each.text for each in told if isinstance(each, (SnapshotNotice, DeltaNotice))]
    assert told[0].type == "snapshot"
    assert "".join(texts) == SLOW.text


@pytest.mark.parametrize("headers", [{}, _bearer("wrong")])
async def test_nobody_is_admitted_without_the_token(
    server: Server, headers: dict[str, str]
) -> None:
    with pytest.raises(InvalidStatus) as caught:
        await connect(socket_url(server), open_timeout=120, additional_headers=headers)
    assert caught.value.response.status_code == 401
    async with RpcClient(websocket(socket_url(server), token="wrong")) as one:
        with pytest.raises(ConnectionRefused):
            await one.call(methods.LIST, ListParams())


async def test_a_browser_page_sends_the_token_as_a_protocol_that_is_not_echoed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    token = "s3cret/=+?"
    encoded = base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
    caplog.set_level(logging.INFO)
    async with running(settings_for(tmp_path, token=token)) as server:
        offered: list[Any] = ["clew.v1", f"bearer.{encoded}"]
        async with connect(socket_url(server), open_timeout=120, subprotocols=offered) as wire:
            assert wire.subprotocol == "clew.v1"
            assert wire.response is not None
            assert encoded not in str(wire.response.headers)
            await wire.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "model.list"}))
            assert json.loads(await wire.recv())["id"] == 1
        for wrong in (["clew.v1"], ["clew.v1", "bearer.d3Jvbmc"], ["clew.v1", "bearer.%"]):
            with pytest.raises(InvalidStatus) as caught:
                await connect(socket_url(server), open_timeout=120, subprotocols=wrong)  # pyright: ignore[reportArgumentType]
            assert caught.value.response.status_code == 401
    assert encoded not in caplog.text
    assert token not in caplog.text


async def test_a_subscription_listens_before_it_is_acknowledged(server: Server) -> None:
    conversation = ConversationId((await server.say("hello")).headers["x-clew-conversation"])
    told: list[tuple[str, bool]] = []
    heard = asyncio.Event()

    async def send(frame: str) -> None:
        message = json.loads(frame)
        listens = server.engine._event_bus.has_live_subscriber(conversation)  # pyright: ignore[reportPrivateUsage]
        told.append((message.get("method", "answer"), listens))
        if message.get("params", {}).get("type") == "state":
            heard.set()

    async def frames() -> AsyncGenerator[str]:
        params = {"conversation": conversation, "after": 1}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "events.subscribe", "params": params}
        yield json.dumps(asked)
        await heard.wait()

    await serve_client(
        OperationContext(
            operations=BUILTIN_OPERATIONS, engine=server.engine, settings=server.settings
        ),
        frames(),
        send,
    )
    assert told == [("answer", True), ("event", True), ("event", True)]


async def test_changes_of_a_client_that_disconnects_at_once_are_stored(server: Server) -> None:
    conversation = ConversationId((await server.say("hello")).headers["x-clew-conversation"])

    async def send(_: str) -> None:
        raise ClientDisconnected

    async def frames() -> AsyncGenerator[str]:
        title = {"conversation": conversation, "title": "Renamed"}
        for number, method, params in (
            (1, "conversation.open", {"conversation": conversation}),
            (2, "conversation.rename", title),
            (3, "conversation.close", {"conversation": conversation}),
        ):
            yield json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

    await serve_client(
        OperationContext(
            operations=BUILTIN_OPERATIONS, engine=server.engine, settings=server.settings
        ),
        frames(),
        send,
    )
    assert (await server.engine.get_view(conversation)).conversation.title == "Renamed"

    async def end_reason() -> str | None:
        return (await server.engine.get_view(conversation)).sessions[-1].end_reason

    assert await wait_until(end_reason, "the session to end") == TUI_CLOSE


async def test_without_a_token_no_page_from_elsewhere_is_admitted(tmp_path: Path) -> None:
    async with running(settings_for(tmp_path, token=None)) as server:
        with pytest.raises(InvalidStatus) as caught:
            await connect(socket_url(server), open_timeout=120, origin="https://evil.example")  # pyright: ignore[reportArgumentType]
        assert caught.value.response.status_code == 403
        async with client(websocket(socket_url(server))) as one:
            await opened(one)
            with pytest.raises(CallFailed, match=r"api\.token"):
                await one.call(methods.CONFIG_SET, ConfigSetParams(key="api.port", value=1))


async def _send_and_receive(wire: ClientConnection, frame: str) -> None:
    await wire.send(frame)
    await wire.recv()


async def test_a_message_that_is_too_large_ends_the_connection_clearly(server: Server) -> None:
    async with connect(socket_url(server), open_timeout=120, additional_headers=_bearer()) as wire:
        with pytest.raises(ConnectionClosed):
            await _send_and_receive(wire, "x" * (MAX_FRAME_BYTES + 1))
        assert wire.close_code == 1009


async def test_a_connection_lives_longer_than_the_head_of_a_request_may_take(
    tmp_path: Path,
) -> None:
    async with (
        running(settings_for(tmp_path), pace=ApiTimeouts(head=0.1)) as server,
        client(over_socket(server)) as one,
    ):
        await opened(one)
        await asyncio.sleep(0.3)
        losses: list[bool | None] = []
        one.on_change = losses.append
        await one.call(methods.LIST, ListParams())
        assert losses == []
