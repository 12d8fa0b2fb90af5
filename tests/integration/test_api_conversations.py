"""Conversations over HTTP: looking at them, saying something, renaming, closing, deleting."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from clew.api import schemas
from clew.testing import FakeProvider, Text, count_user_texts
from clew.wire import models
from tests.integration.api_server import always, running, settings_for, until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    import httpx2
    from pydantic import BaseModel

    from tests.integration.api_server import Server


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(count_user_texts) as fake:
        yield fake


@pytest.fixture
async def server(tmp_path: Path, provider: FakeProvider) -> AsyncGenerator[Server]:
    async with running(settings_for(tmp_path, provider=provider)) as found:
        yield found


@pytest.fixture
async def on_each(tmp_path: Path, provider: FakeProvider, store_url: str) -> AsyncGenerator[Server]:
    """A server over each kind of store."""
    async with running(settings_for(tmp_path, provider=provider, store_url=store_url)) as found:
        yield found


def shaped(answer: httpx2.Response, shape: type[BaseModel], status: int = 200) -> Any:
    """The body, which is exactly as it is described."""
    assert answer.status_code == status, answer.text
    shape.model_validate_json(answer.content)
    return answer.json()


def problem(answer: httpx2.Response, status: int) -> Any:
    return shaped(answer, schemas.Problems, status)["error"]


async def answered(server: Server, conversation: str, entries: int) -> None:
    """Wait until the log has so many entries and nothing is under way."""

    async def done() -> bool:
        view = await server.engine.get_view(await server.engine.resolve_name(conversation))
        unfinished = await server.engine.get_unfinished_turn(view.conversation.id)
        return view.conversation.last_seq >= entries and unfinished is None

    await until(done)


async def test_a_conversation_is_shown_under_each_of_its_names(on_each: Server) -> None:
    said = await on_each.say("hello", "my/talk: 100%")
    ids = [said.headers["X-Clew-Conversation"], said.headers["X-Clew-Session"]]
    names = [*ids, "my/talk: 100%", "agent:main:local:my/talk%3A 100%25"]
    shown = [
        shaped(
            await on_each.http.get(f"/api/conversations/{quote(name, safe='')}"),
            models.ConversationShape,
        )
        for name in names
    ]
    assert {each["id"] for each in shown} == {ids[0]}
    assert shown[0]["head_session"] == ids[1]
    assert shown[0]["entries"] == 2
    assert shown[0]["routes"] == ["agent:main:local:my/talk%3A 100%25"]
    assert [each["messages"] for each in shown[0]["sessions"]] == [2]


NAMES_OF_NOTHING = (
    "nothing", "cnv_1", "trn_1", "20260101_000000_aaaaaa", "%00", "%FF", "agent:x", "x" * 999,
)  # fmt: skip
OF_ONE: tuple[tuple[str, str, Any], ...] = (
    ("GET", "", None),
    ("GET", "/entries", None),
    ("GET", "/events", None),
    ("POST", "/rename", {"title": "x"}),
    ("POST", "/branch", {}),
    ("POST", "/rewind", {"to": 0}),
    ("POST", "/compact", {}),
    ("POST", "/compact", {"dry_run": True}),
    ("POST", "/restore", None),
    ("POST", "/close", None),
    ("DELETE", "", None),
)


async def test_a_name_of_nothing_is_not_found(on_each: Server) -> None:
    for name in NAMES_OF_NOTHING:
        for method, rest, body in OF_ONE:
            path = f"/api/conversations/{name}{rest}"
            answer = await on_each.http.request(method, path, json=body)
            assert problem(answer, 404)["code"] == "not_found"


async def test_lists_come_in_pages_the_last_used_first(on_each: Server) -> None:
    for name in ("one", "two", "three"):
        await on_each.say("hello", name)
    await on_each.say("not listed", None)
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        at = {"cursor": cursor} if cursor else {}
        page = shaped(
            await on_each.http.get("/api/conversations", params={"limit": "2", **at}),
            models.ConversationList,
        )
        seen += [each["routes"][0] for each in page["items"]]
        cursor = page["next"]
    assert seen == [f"agent:main:local:{name}" for name in ("three", "two", "one")]
    every = await on_each.http.get("/api/conversations?adhoc=true")
    assert len(every.json()["items"]) == 4


async def test_a_list_is_narrowed_by_a_part_of_the_title(on_each: Server) -> None:
    for name in ("one", "two"):
        await on_each.say("hello", name)
        await on_each.http.post(
            f"/api/conversations/{name}/rename", json={"title": f"About {name} 100%"}
        )
    found = await on_each.http.get("/api/conversations", params={"query": "TWO 100%"})
    assert [each["title"] for each in found.json()["items"]] == ["About two 100%"]
    nul = await on_each.http.get("/api/conversations?query=%00")
    assert nul.json()["items"] == []


async def test_messages_are_found(on_each: Server) -> None:
    await on_each.say("the needle in the haystack")
    page = shaped(await on_each.http.get("/api/search", params={"query": "needle"}), models.HitList)
    assert {each["seq"] for each in page["items"]} == {1, 2}
    assert problem(await on_each.http.get("/api/search"), 400)["param"] == "query"


@pytest.mark.parametrize(
    ("path", "param"),
    [
        ("/api/conversations?limit=0", "limit"),
        ("/api/conversations?limit=many", "limit"),
        ("/api/conversations?limit=1e2", "limit"),
        ("/api/conversations?cursor=nonsense", None),
        ("/api/conversations?adhoc=perhaps", "adhoc"),
        ("/api/conversations/talk/entries?after=-1", "after"),
        ("/api/conversations/talk/entries?limit=100000", "limit"),
        ("/api/conversations/talk/events?after=x", "after"),
        ("/api/search?query=", "query"),
    ],
)
async def test_a_wrong_query_is_refused(server: Server, path: str, param: str | None) -> None:
    await server.say("hello")
    assert problem(await server.http.get(path), 400).get("param") == param


async def test_the_log_is_read_in_pages(on_each: Server) -> None:
    await on_each.say("one")
    await on_each.say("two")
    first = shaped(
        await on_each.http.get("/api/conversations/talk/entries?limit=3"), models.EntryList
    )
    rest = shaped(
        await on_each.http.get(
            "/api/conversations/talk/entries", params={"after": first["next"], "limit": "3"}
        ),
        models.EntryList,
    )
    entries = first["items"] + rest["items"]
    assert [each["seq"] for each in entries] == [1, 2, 3, 4]
    assert rest["next"] is None
    assert [each["role"] for each in entries] == ["user", "assistant"] * 2
    assert entries[2]["message"]["parts"][0]["content"] == "two"
    assert entries[2]["text"] == "two"


async def test_a_message_is_acknowledged_once_it_is_stored_and_answered_later(
    server: Server,
) -> None:
    accepted = shaped(
        await server.http.post("/api/conversations/talk/messages", json={"text": "hello"}),
        schemas.AcceptedShape,
        202,
    )
    assert accepted["position"] == 0
    await answered(server, accepted["conversation"], 2)
    entries = await server.http.get("/api/conversations/talk/entries")
    assert [each["text"] for each in entries.json()["items"]] == [
        "hello",
        "turn 1: I have seen: hello",
    ]


async def test_messages_in_mid_turn_follow_the_rule_that_came_with_them(
    on_each: Server, provider: FakeProvider
) -> None:
    provider.script = always(Text("slow", chunks=4, delay=0.15))
    path = "/api/conversations/talk/messages"
    first = await on_each.http.post(path, json={"text": "first"})
    await on_each.begun()
    refused = await on_each.http.post(path, json={"text": "no", "double_text": "reject"})
    queued = [
        await on_each.http.post(path, json={"text": text, "double_text": "queue"})
        for text in ("second", "third")
    ]
    assert problem(refused, 409)["code"] == "rejected"
    assert [each.json()["position"] for each in queued] == [0, 1]
    await answered(on_each, first.json()["conversation"], 6)


async def test_files_come_along_and_the_model_reads_them(
    server: Server, provider: FakeProvider
) -> None:
    file = {"name": "a.txt", "media_type": "text/plain", "data": "aGVsbG8="}
    body = {"text": "read this", "attachments": [file]}
    sent = await server.http.post("/api/conversations/talk/messages", json=body)
    await answered(server, sent.json()["conversation"], 2)
    assert b"hello\\n[end of a.txt]" in provider.requests[0].body


async def test_a_message_is_taken_once_per_key(on_each: Server) -> None:
    path, key = "/api/conversations/talk/messages", {"Idempotency-Key": "k1"}
    first = await on_each.http.post(path, json={"text": "hello"}, headers=key)
    await answered(on_each, "talk", 2)
    again = await on_each.http.post(path, json={"text": "hello"}, headers=key)
    other = await on_each.http.post(path, json={"text": "other"}, headers=key)
    assert again.status_code == 202
    assert again.json() == first.json()
    assert problem(other, 422)["code"] == "idempotency_key_reused"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "text"),
        ({"text": 7}, "text"),
        ({"text": " "}, None),
        ({"text": "hi", "double_text": "perhaps"}, "double_text"),
        ({"text": "hi", "attachments": [{"name": "a.txt"}]}, "attachments[0].data"),
        ({"text": "hi", "attachments": [{"name": "a.txt", "data": "?"}]}, "attachments[0].data"),
        ({"text": "hi", "attachments": "a.txt"}, "attachments"),
        ([], None),
    ],
)
async def test_a_wrong_message_is_refused(server: Server, body: Any, param: str | None) -> None:
    answer = await server.http.post("/api/conversations/talk/messages", json=body)
    assert problem(answer, 400).get("param") == param


async def test_a_conversation_is_renamed(server: Server) -> None:
    await server.say("hello", "one")
    await server.say("hello", "two")
    path = "/api/conversations/one/rename"
    named = shaped(
        await server.http.post(path, json={"title": "  Plans\n"}), models.ConversationShape
    )
    assert named["title"] == "Plans"
    taken = await server.http.post("/api/conversations/two/rename", json={"title": "Plans"})
    assert problem(taken, 409)["code"] == "title_taken"
    for title in ("", " ", "x" * 201, 7):
        problem(await server.http.post(path, json={"title": title}), 400)
    problem(await server.http.post(path, json={}), 400)
    without = await server.http.post(path, json={"title": None})
    assert without.json()["title"] is None


async def test_a_closed_conversation_is_opened_again_by_the_next_message(on_each: Server) -> None:
    await on_each.say("one")
    closed = shaped(
        await on_each.http.post("/api/conversations/talk/close"), models.ConversationShape
    )
    assert closed["sessions"][-1]["end_reason"] == "user_exit"
    again = await on_each.http.post("/api/conversations/talk/close")
    assert again.json()["sessions"] == closed["sessions"]
    said = await on_each.say("two")
    assert said.json()["choices"][0]["message"]["content"] == "turn 2: I have seen: one | two"
    shown = await on_each.http.get("/api/conversations/talk")
    assert [each["opened_by"] for each in shown.json()["sessions"]] == ["start", "reopen"]


async def test_a_deleted_conversation_is_gone(on_each: Server) -> None:
    said = await on_each.say("hello")
    conversation = said.headers["X-Clew-Conversation"]
    gone = shaped(await on_each.http.delete("/api/conversations/talk"), schemas.Deleted)
    assert gone["deleted"] == conversation
    problem(await on_each.http.get(f"/api/conversations/{conversation}"), 404)
    problem(await on_each.http.delete("/api/conversations/talk"), 404)
    problem(await on_each.http.post("/api/conversations/cnv_never/undelete"), 404)
    anew = await on_each.say("hello again")
    assert anew.headers["X-Clew-Conversation"] != conversation


async def test_a_deleted_conversation_is_brought_back_and_continues(on_each: Server) -> None:
    said = await on_each.say("one")
    conversation = said.headers["X-Clew-Conversation"]
    before = (await on_each.http.get("/api/conversations/talk")).json()
    gone = shaped(await on_each.http.delete("/api/conversations/talk"), schemas.Deleted)
    assert gone["undo_until"] > before["updated_at"]
    hits = (await on_each.http.get("/api/search", params={"query": "one"})).json()["items"]
    assert hits == []
    back = await on_each.http.post(f"/api/conversations/{conversation}/undelete")
    # Its title may have been given in between.
    for name in ("id", "head_session", "entries", "routes", "sessions"):
        assert back.json()[name] == before[name]
    problem(await on_each.http.post(f"/api/conversations/{conversation}/undelete"), 404)
    more = await on_each.say("two")
    assert more.json()["choices"][0]["message"]["content"] == "turn 2: I have seen: one | two"


async def test_deleting_ends_the_turn_that_is_under_way(
    server: Server, provider: FakeProvider
) -> None:
    provider.script = always(Text("never told", chunks=20, delay=0.2))
    asked = asyncio.create_task(server.say("hello"))
    await server.begun()
    await server.http.delete("/api/conversations/talk")
    answer = await asked
    assert answer.status_code in (404, 409)
    assert answer.headers["x-should-retry"] == "false"
