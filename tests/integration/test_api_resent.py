"""Clients that name no conversation and resend all history: theirs goes on where it is the same."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from clew.core.ids import ConversationId
from clew.store.transactions.grants import is_tainted
from clew.testing import (
    Calls,
    Fail,
    FakeProvider,
    ScriptedCall,
    Text,
    count_user_texts,
    reply_by_user_text,
    reply_in_sequence,
)
from tests.integration.api_server import running, settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    import httpx2

    from tests.integration.api_server import Server

Messages = list[dict[str, Any]]

#: Two files that begin as pictures do.
PICTURE = "data:image/png;base64,iVBORw0KGgo="
OTHER_PICTURE = "data:image/png;base64,iVBORw0KGgoA"


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(count_user_texts) as fake:
        yield fake


@pytest.fixture
async def server(tmp_path: Path, provider: FakeProvider) -> AsyncGenerator[Server]:
    async with running(settings_for(tmp_path, provider=provider)) as found:
        yield found


class Client:
    """Keeps its history itself, as clients of OpenAI do."""

    def __init__(self, server: Server, *, system: str | None = None) -> None:
        self._server = server
        self.messages: Messages = [] if system is None else [{"role": "system", "content": system}]
        self.conversations: list[str] = []

    async def say(self, text: str) -> str:
        self.messages.append({"role": "user", "content": text})
        answer = await post(self._server, self.messages)
        assert answer.status_code == 200, answer.text
        said: str = answer.json()["choices"][0]["message"]["content"]
        self.messages.append({"role": "assistant", "content": said})
        self.conversations.append(answer.headers["X-Clew-Conversation"])
        return said


async def has_foreign_text(server: Server, conversation: str) -> bool:
    return await server.store.read(is_tainted, ConversationId(conversation))


async def post(server: Server, messages: Messages, **headers: str) -> httpx2.Response:
    return await server.http.post(
        "/v1/chat/completions", json={"messages": messages}, headers=headers
    )


def contents(provider: FakeProvider) -> list[tuple[str, str]]:
    """Return the content of the last request to the provider."""
    last = provider.wait_until_settled()[-1].json
    assert last is not None
    return [(each["role"], each["content"]) for each in last["messages"]]


@pytest.mark.parametrize("system", [None, "be brief"], ids=["bare", "with a system message"])
async def test_a_history_that_is_the_context_continues_in_its_conversation(
    store_url: str, tmp_path: Path, provider: FakeProvider, system: str | None
) -> None:
    async with running(settings_for(tmp_path, provider=provider, store_url=store_url)) as server:
        client = Client(server, system=system)
        for text in ("one", "two", "three"):
            await client.say(text)
        assert len(set(client.conversations)) == 1
        assert not await has_foreign_text(server, client.conversations[0])
        view = await server.engine.get_view(
            await server.engine.resolve_name(client.conversations[0])
        )
    assert contents(provider) == [(each["role"], each["content"]) for each in client.messages[:-1]]
    # Nothing is said twice: the log holds each message once.
    assert view.conversation.last_seq == 6
    assert view.conversation.adhoc


async def test_such_a_conversation_is_left_out_of_lists_unless_asked_for(server: Server) -> None:
    await Client(server).say("hello")
    assert (await server.engine.list_conversations()).items == ()
    assert len((await server.engine.list_conversations(adhoc=True)).items) == 1


async def test_a_history_that_came_from_elsewhere_is_taken_over_as_it_is(
    server: Server, provider: FakeProvider
) -> None:
    sent: Messages = [
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "one"}]},
        {"role": "assistant", "content": "first"},
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": "three"},
    ]
    answer = await post(server, sent)
    assert answer.json()["choices"][0]["message"]["content"].endswith("one | two\n\nthree")
    # What its answers have read is not known here.
    assert await has_foreign_text(server, answer.headers["X-Clew-Conversation"])
    sent += [
        {"role": "assistant", "content": answer.json()["choices"][0]["message"]["content"]},
        {"role": "user", "content": "four"},
    ]
    again = await post(server, sent)
    assert again.headers["X-Clew-Conversation"] == answer.headers["X-Clew-Conversation"]
    assert contents(provider)[:2] == [("system", "be brief"), ("user", "one")]


async def test_two_that_begin_alike_stay_apart(server: Server) -> None:
    first, second = Client(server), Client(server)
    await first.say("hello")
    await second.say("hello")
    assert first.conversations != second.conversations
    assert await first.say("mine") == "turn 2: I have seen: hello | mine"
    assert await second.say("yours") == "turn 2: I have seen: hello | yours"
    assert len({*first.conversations, *second.conversations}) == 2


async def test_of_many_concurrent_continuations_one_gets_the_conversation(
    store_url: str, tmp_path: Path, provider: FakeProvider
) -> None:
    async with running(settings_for(tmp_path, provider=provider, store_url=store_url)) as server:
        client = Client(server)
        await client.say("one")
        names = [f"way {n}" for n in range(6)]
        answers = await asyncio.gather(
            *(post(server, [*client.messages, {"role": "user", "content": name}]) for name in names)
        )
    heard = [answer.json()["choices"][0]["message"]["content"] for answer in answers]
    assert heard == [f"turn 2: I have seen: one | {name}" for name in names]
    went_to = [answer.headers["X-Clew-Conversation"] for answer in answers]
    assert went_to.count(client.conversations[0]) == 1
    assert len(set(went_to)) == 6


async def test_an_edited_history_is_another_conversation(
    server: Server, provider: FakeProvider
) -> None:
    client = Client(server)
    await client.say("one")
    await client.say("two")
    client.messages = client.messages[:2]
    await client.say("two, in other words")
    assert client.conversations[2] != client.conversations[1]
    assert contents(provider)[-1] == ("user", "two, in other words")
    assert len(contents(provider)) == 3


async def test_an_edited_answer_is_another_conversation(server: Server) -> None:
    client = Client(server)
    await client.say("one")
    client.messages[-1]["content"] = "what it should have said"
    await client.say("two")
    assert client.conversations[0] != client.conversations[1]


async def test_white_space_makes_no_difference(server: Server) -> None:
    client = Client(server)
    await client.say(" one\n")
    client.messages[-1]["content"] += "\n"
    client.messages[0]["content"] = "one"
    await client.say("two")
    assert len(set(client.conversations)) == 1


async def test_asking_again_does_not_say_it_twice_in_one_conversation(server: Server) -> None:
    client = Client(server)
    await client.say("one")
    asked: Messages = [*client.messages, {"role": "user", "content": "two"}]
    first, second = await post(server, asked), await post(server, asked)
    assert first.headers["X-Clew-Conversation"] == client.conversations[0]
    assert second.headers["X-Clew-Conversation"] != client.conversations[0]
    assert first.json()["choices"] == second.json()["choices"]


async def test_instructions_after_each_new_message_leave_the_conversation_the_same(
    server: Server, provider: FakeProvider
) -> None:
    client = Client(server, system="be brief")
    reminder = {"role": "system", "content": "answer in English"}
    for text in ("one", "two"):
        client.messages.append({"role": "user", "content": text})
        answer = await post(server, [*client.messages, reminder])
        said = answer.json()["choices"][0]["message"]["content"]
        client.messages.append({"role": "assistant", "content": said})
        client.conversations.append(answer.headers["X-Clew-Conversation"])
    assert len(set(client.conversations)) == 1
    assert contents(provider)[:2] == [
        ("system", "be brief\n\nanswer in English"),
        ("user", "one"),
    ]


async def test_a_picture_is_shown_to_the_model_and_belongs_to_the_history(
    server: Server, provider: FakeProvider
) -> None:
    provider.script = reply_in_sequence([], default=Text("a dot"))
    first, other = Client(server), Client(server)
    for client, picture in ((first, PICTURE), (other, OTHER_PICTURE)):
        shown = {"type": "image_url", "image_url": {"url": picture}}
        parts = [{"type": "text", "text": "look"}, shown]
        client.messages.append({"role": "user", "content": parts})
        answer = await post(server, client.messages)
        client.messages.append({"role": "assistant", "content": "a dot"})
        client.conversations.append(answer.headers["X-Clew-Conversation"])
    assert PICTURE in provider.requests[0].body.decode()
    # The same words about another picture are another conversation.
    for client in (first, other):
        await client.say("and now?")
        assert len(set(client.conversations)) == 1
    assert first.conversations != other.conversations
    # A conversation that opens with a history has its pictures.
    edited = [*first.messages[:2], {"role": "user", "content": "and then?"}]
    answer = await post(server, edited)
    assert answer.headers["X-Clew-Conversation"] not in first.conversations
    last = provider.wait_until_settled()[-1].body.decode()
    assert PICTURE in last
    assert OTHER_PICTURE not in last


async def test_a_conversation_that_went_on_elsewhere_is_not_the_same_any_more(
    server: Server,
) -> None:
    client = Client(server)
    await client.say("one")
    await server.say("by the way", client.conversations[0])
    await client.say("two")
    assert client.conversations[0] != client.conversations[1]


async def test_a_conversation_that_was_rewound_is_not_the_same_any_more(server: Server) -> None:
    client = Client(server)
    await client.say("one")
    conversation = await server.engine.resolve_name(client.conversations[0])
    filed = await server.engine.queue_rewind(conversation, to=0)
    async for _ in server.engine.stream_input(filed):
        pass
    await client.say("two")
    assert client.conversations[0] != client.conversations[1]


async def test_a_deleted_conversation_is_restarted_from_its_history(server: Server) -> None:
    client = Client(server)
    await client.say("one")
    await server.engine.delete_conversation(
        await server.engine.resolve_name(client.conversations[0])
    )
    assert await client.say("two") == "turn 2: I have seen: one | two"
    assert client.conversations[0] != client.conversations[1]


async def test_a_question_without_an_answer_is_part_of_the_history(
    server: Server, provider: FakeProvider
) -> None:
    provider.script = reply_by_user_text(
        {"broken": Fail("authentication")}, default=count_user_texts
    )
    failed = await post(server, [{"role": "user", "content": "broken"}])
    assert failed.status_code == 502
    again = await post(
        server, [{"role": "user", "content": "broken"}, {"role": "user", "content": "and now?"}]
    )
    assert again.status_code == 200
    assert again.headers["X-Clew-Conversation"] == failed.headers["X-Clew-Conversation"]


@pytest.mark.parametrize("heard", ["I look.\n\nNothing there.", "Nothing there."])
async def test_an_answer_with_tool_calls_is_known_as_streamed_and_as_plain(
    server: Server, provider: FakeProvider, heard: str
) -> None:
    provider.script = reply_by_user_text(
        {"go": [Calls([ScriptedCall("nothing")], text="I look."), Text("Nothing there.")]},
        default=count_user_texts,
    )
    first = await post(server, [{"role": "user", "content": "go"}])
    second = await post(
        server,
        [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": heard},
            {"role": "user", "content": "thanks"},
        ],
    )
    assert second.headers["X-Clew-Conversation"] == first.headers["X-Clew-Conversation"]


async def test_tool_calls_of_the_client_cannot_be_taken_over(server: Server) -> None:
    sent: Messages = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "tool", "content": "done"},
        {"role": "user", "content": "two"},
    ]
    answer = await post(server, sent)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "messages[1]")
    named = await post(server, sent, **{"X-Clew-Conversation": "talk"})
    assert named.status_code == 200
