"""Runs of AG-UI, as a front-end that keeps a copy of the conversation asks for them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from clew.core.double_text import DoubleText
from clew.core.turn import TurnState
from clew.testing import (
    CutStream,
    Fail,
    FakeProvider,
    Hang,
    Text,
    count_user_texts,
    reply_in_sequence,
)
from tests.integration.ag_ui_client import AgUi
from tests.integration.api_server import TOKEN, always, running, serving, settings_for, until
from tests.line.world import open_world

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    from tests.integration.api_server import Server
    from tests.line.world import World

#: A dot.
PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9"
    "awAAAABJRU5ErkJggg=="
)
FIRST = "turn 1: I have seen: hello"


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(count_user_texts) as fake:
        yield fake


@pytest.fixture
async def server(store_url: str, tmp_path: Path, provider: FakeProvider) -> AsyncGenerator[Server]:
    settings = settings_for(tmp_path, provider=provider, store_url=store_url)
    async with running(settings) as found:
        yield found


@pytest.fixture
async def asking(store_url: str, tmp_path: Path) -> AsyncGenerator[tuple[World, AgUi]]:
    """A world whose tools ask, and a client of its server."""
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        open_world(store_url, tmp_path) as world,
        serving(world.engine, settings_for(tmp_path)) as url,
        httpx2.AsyncClient(base_url=url, headers=bearer, timeout=60) as http,
    ):
        yield world, AgUi(http)
        assert await world.check() == []


async def test_runs_continue_a_conversation_and_send_no_history_that_the_client_has(
    server: Server, provider: FakeProvider
) -> None:
    provider.script = always(Text("Two and two is four.", thinking="Let me count."))
    client = AgUi(server.http)
    copy = await client.say("hello")
    assert copy.kinds[:2] == ["RUN_STARTED", "STEP_STARTED"]
    assert "MESSAGES_SNAPSHOT" not in copy.kinds
    assert list(copy.thinking.values()) == ["Let me count."]
    assert copy.texts == [("user", "hello"), ("assistant", "Two and two is four.")]
    assert (copy.end["outcome"], copy.end["runId"]) == ({"type": "success"}, "run-1")
    assert copy.end["usage"][0]["totalTokens"] > 0
    provider.script = count_user_texts
    copy = await client.say("again")
    assert "MESSAGES_SNAPSHOT" not in copy.kinds
    assert copy.texts[2:] == [
        ("user", "again"),
        ("assistant", "turn 2: I have seen: hello | again"),
    ]


async def test_a_client_whose_history_differs_gets_the_stored_one(server: Server) -> None:
    client = AgUi(server.http)
    await client.say("hello")
    await server.say("from elsewhere")
    client.copy.messages[1]["content"] = "something else"
    client.copy.messages.append({"id": "x", "role": "assistant", "content": "never said"})
    copy = await client.say("again")
    assert copy.kinds[:2] == ["RUN_STARTED", "MESSAGES_SNAPSHOT"]
    assert [one["id"] for one in copy.messages].count("mine-1") == 1
    assert {text for role, text in copy.texts if role == "assistant"} == {
        FIRST,
        "turn 2: I have seen: hello | from elsewhere",
        "turn 3: I have seen: hello | from elsewhere | again",
    }
    new = AgUi(server.http)
    shown = await new.run("look")
    assert shown.kinds == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    assert [role for role, _ in shown.texts] == ["user", "assistant"] * 3


async def test_the_same_run_and_the_same_message_are_taken_once(
    server: Server, provider: FakeProvider
) -> None:
    words = " ".join(f"word{number}" for number in range(30))
    provider.script = always(Text(words, chunks=30, delay=0.02))
    client = AgUi(server.http)
    cut = await client.run("one", until="word3", messages=[user("hello")])
    assert cut.texts[-1][1] != words
    # It was cut in mid answer: the turn goes on without the client.
    joined = await client.run("one", messages=[user("hello"), *cut.messages])
    assert joined.texts == [("user", "hello"), ("assistant", words)]
    again = await client.run("one")
    assert again.texts == joined.texts
    other = await client.run("two", messages=[user("hello")])
    assert other.texts == joined.texts
    assert len(provider.requests) == 1
    refused = await server.http.post("/ag-ui", json=client.input("one", messages=[user("x", "n")]))
    assert (refused.status_code, refused.json()["error"]["param"]) == (422, "runId")


async def test_a_message_of_two_runs_at_once_is_taken_once(
    server: Server, provider: FakeProvider
) -> None:
    clients = [AgUi(server.http) for _ in range(4)]
    for sent in (user("hello", "first"), user("again", "second")):
        copies = await asyncio.gather(
            *(
                client.run(f"{sent['id']}-{number}", messages=[sent])
                for number, client in enumerate(clients)
            )
        )
        assert [copy.texts for copy in copies] == [copies[0].texts] * len(clients)
    assert len(provider.requests) == 2
    other = await clients[0].run("other", messages=[user("another text", "second")])
    assert other.texts[-1] == ("assistant", "turn 3: I have seen: hello | again | another text")
    # What was taken back may be said again.
    await server.say("/undo")
    again = await clients[0].run("back", messages=[user("another text", "second")])
    assert again.texts[-1] == other.texts[-1]
    assert len(provider.requests) == 4


def user(text: str, id: str = "mine") -> dict[str, Any]:
    return {"id": id, "role": "user", "content": text}


async def test_a_broken_stream_is_taken_back_and_a_failed_turn_is_an_error(
    server: Server, provider: FakeProvider
) -> None:
    provider.script = reply_in_sequence([CutStream(after=3)], default=count_user_texts)
    copy = await AgUi(server.http).say("hello")
    assert copy.kinds.count("MESSAGES_SNAPSHOT") == 1
    assert copy.texts == [("user", "hello"), ("assistant", FIRST)]
    provider.script = always(Fail("authentication"))
    copy = await AgUi(server.http, "other").say("hello")
    assert (copy.end["type"], copy.end["code"]) == ("RUN_ERROR", "authentication")


async def test_a_run_that_is_stopped_says_so_and_leaving_stops_nothing(
    server: Server, provider: FakeProvider
) -> None:
    provider.script = always(Hang())
    client = AgUi(server.http)
    async with asyncio.TaskGroup() as tasks:
        run = tasks.create_task(client.say("hello", run="one"))
        await server.begun()
        leaving = tasks.create_task(AgUi(server.http).run("look"))
        await asyncio.sleep(0)
        leaving.cancel()
        conversation = await server.engine.resolve_name("talk")
        assert await server.engine.request_stop(conversation)
    assert run.result().end["outcome"] == {"type": "cancelled"}


@pytest.mark.both_databases
async def test_an_approval_interrupts_the_run_and_the_next_one_answers_it(
    asking: tuple[World, AgUi],
) -> None:
    world, client = asking
    copy = await client.say("a: pay look")
    outcome = copy.end["outcome"]
    (interrupt,) = outcome["interrupts"]
    assert (outcome["type"], interrupt["reason"]) == ("interrupt", "tool_call")
    assert interrupt["metadata"]["args"] == '{"what":"a00"}'
    assert '{"what":"a00"}' in interrupt["message"]
    (parent,) = [one for one in copy.messages if "toolCalls" in one]
    assert interrupt["toolCallId"] == parent["toolCalls"][0]["id"]
    refused = await client.http.post("/ag-ui", json=client.input("x", messages=[user("and?")]))
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "approval_required")
    waiting = await client.run("look")
    assert waiting.end["outcome"] == outcome
    answer = {"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}
    before = [dict(one) for one in copy.messages]
    copy = await client.run("next", resume=[answer])
    assert not {"TOOL_CALL_START", "MESSAGES_SNAPSHOT"} & {*copy.kinds}
    results = [(one["role"], one["content"].strip()) for one in copy.messages[len(before) :]]
    assert results == [
        ("tool", "pay a00 done"),
        ("tool", "look a01 done"),
        ("assistant", "answer to a"),
    ]
    assert copy.end["outcome"] == {"type": "success"}
    shown = [dict(one) for one in copy.messages]
    again = await client.run("next", resume=[answer])
    assert again.messages == shown
    late = {**answer, "payload": {"approved": False}}
    refused = await client.http.post("/ag-ui", json=client.input("late", resume=[late]))
    assert refused.status_code == 409
    assert set(world.tools.ran.values()) == {1}


UNCLEAR: list[Any] = [{"approved": True, "editedArgs": {}}, {"approved": "yes"}, None, [], "yes"]


async def test_a_denial_goes_before_the_message_that_comes_with_it(
    asking: tuple[World, AgUi],
) -> None:
    world, client = asking
    copy = await client.say("a: pay dare")
    asked = [one["id"] for one in copy.end["outcome"]["interrupts"]]
    denied: list[dict[str, object]] = [
        {"interruptId": asked[0], "status": "cancelled"},
        {
            "interruptId": asked[1],
            "status": "resolved",
            "payload": {"approved": False, "note": "no"},
        },
    ]
    refused = await client.http.post(
        "/ag-ui", json=client.input("x", messages=[user("b:")], resume=denied[:1])
    )
    assert refused.status_code == 409
    for payload in UNCLEAR:
        answer = {"interruptId": asked[0], "status": "resolved", "payload": payload}
        refused = await client.http.post("/ag-ui", json=client.input("x", resume=[answer]))
        assert refused.status_code == 400, payload
        assert refused.json()["error"]["param"] == "resume[0].payload"
    unknown = [{"interruptId": "apr_0", "status": "cancelled"}]
    refused = await client.http.post("/ag-ui", json=client.input("x", resume=unknown))
    assert refused.status_code == 404
    elsewhere = AgUi(client.http, "elsewhere")
    await elsewhere.say("c:")
    refused = await client.http.post("/ag-ui", json=elsewhere.input("x", resume=denied))
    assert refused.status_code == 404
    assert len(await world.engine.list_approvals(await world.engine.resolve_name("talk"))) == 2
    copy = await client.say("b:", resume=denied)
    said = [text.strip() for role, text in copy.texts if role == "assistant"]
    assert said == ["answer to a", "answer to b"]
    assert any("not approved: no" in text for role, text in copy.texts if role == "tool")
    assert world.tools.ran == {}


async def test_a_message_behind_another_turn_is_shown_after_it(asking: tuple[World, AgUi]) -> None:
    world, client = asking
    await world.say("x: pay")
    talk = await world.engine.resolve_name("talk")
    await world.waiting(talk)
    # Stored by a front that does not ask first.
    behind = await world.say("y:", DoubleText.QUEUE)
    copy = await client.run("look")
    assert copy.end["outcome"]["type"] == "interrupt"
    (question,) = await world.engine.list_approvals(talk)
    await world.engine.answer_approval(question.id, yes=True)
    await world.end(behind)
    copy = await client.run("look again")
    assert [text.strip() for _, text in copy.texts[-2:]] == ["y:", "answer to y"]
    state = await world.engine.get_state(talk)
    assert state.turn is None or state.turn.state is not TurnState.WAITING


REFUSED: dict[str, dict[str, Any]] = {
    "tools": {"tools": [{"name": "f", "description": "", "parameters": {}}]},
    "messages[0]": {"messages": [user("x") | {"content": None}]},
    "messages[0].content[0]": {"messages": [user("x") | {"content": [{"type": "binary"}]}]},
    "messages[0].content[1].source": {
        "messages": [
            user("x")
            | {
                "content": [
                    {"type": "text", "text": "see"},
                    {"type": "image", "source": {"type": "url", "value": "https://x.test/y"}},
                ]
            }
        ]
    },
    "threadId": {"threadId": ""},
    "runId": {"runId": 7},
    "messages": {"messages": "hello"},
    "resume[0].payload": {"resume": [{"interruptId": "apr_1", "status": "resolved"}]},
    "resume[0].status": {"resume": [{"interruptId": "apr_1", "status": "yes"}]},
}


async def test_what_is_not_supported_is_refused_with_the_field(
    server: Server, provider: FakeProvider
) -> None:
    client = AgUi(server.http)
    for param, given in REFUSED.items():
        answer = await server.http.post(
            "/ag-ui", json=client.input("one", **{"messages": [user("hello")], **given})
        )
        assert answer.status_code == 400, (param, answer.text)
        assert answer.json()["error"]["param"] == param, answer.text
    unknown = client.input("one", **REFUSED["messages[0].content[0]"])
    answer = await server.http.post("/ag-ui", json=unknown)
    assert "binary" in answer.json()["error"]["message"]
    for thread in ("cnv_0", "trn_1", "a\n"):
        answer = await server.http.post("/ag-ui", json=client.input("one", threadId=thread))
        assert answer.status_code in (400, 404), answer.text
    assert (await server.http.post("/ag-ui", content=b"{")).status_code == 400
    wrong = {"Authorization": "Bearer wrong"}
    answer = await server.http.post("/ag-ui", json=client.input("one"), headers=wrong)
    assert answer.status_code == 401
    assert (await server.engine.list_conversations()).items == ()
    parts: list[dict[str, Any]] = [
        {"type": "text", "text": "hello"},
        {"type": "image", "source": {"type": "data", "value": PICTURE, "mimeType": "image/png"}},
    ]
    copy = await client.run("one", messages=[user("") | {"content": parts}])
    assert "I have seen: hello" in copy.texts[-1][1]
    assert '"image_url"' in provider.requests[0].body.decode()
    await until(lambda: _has_one(server))


async def _has_one(server: Server) -> bool:
    return len((await server.engine.list_conversations()).items) == 1
