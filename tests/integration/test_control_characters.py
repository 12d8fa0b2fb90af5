"""One rule at every door: what no database can hold is replaced, all else is kept."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest

from clew.cli import entry_point
from clew.testing import FakeProvider, count_user_texts
from clew.testing.channels import MemoryPlatform
from clew.wire import methods
from clew.wire.params import OpenParams, SubmitParams
from tests.channels.desk import memory_desk, until
from tests.integration.api_server import running, settings_for
from tests.integration.rpc_clients import client, over_socket

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    from tests.integration.api_server import Server

#: NUL, bell, escape sequences, DEL, C1, line and paragraph separators, a BOM, bidi marks.
KEPT = "a\x07b\x1b[31mc\x7fd\x85e\x9bf\u2028g\u2029h\ufeffi\u202ej\r\nk\tl\x0bm\x0cn\x01o"
SENT = f"{KEPT}\x00p\ud800q\udfff"
STORED = f"{KEPT}\ufffdp\ufffdq\ufffd"


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(count_user_texts) as fake:
        yield fake


@pytest.fixture
async def server(store_url: str, tmp_path: Path, provider: FakeProvider) -> AsyncGenerator[Server]:
    async with running(settings_for(tmp_path, provider=provider, store_url=store_url)) as found:
        yield found


async def said(server: Server, name: str = "talk") -> str:
    """Return the person's message as the log has it."""
    listed = await server.http.get(f"/api/conversations/{name}/entries")
    (text,) = (each["text"] for each in listed.json()["items"] if each["role"] == "user")
    return text


def asked(provider: FakeProvider) -> str:
    """Return the message as the model received it."""
    body = provider.wait_until_settled()[-1].json
    assert body is not None
    return body["messages"][-1]["content"]


async def test_over_the_completions_endpoint(server: Server, provider: FakeProvider) -> None:
    body = json.dumps({"messages": [{"role": "user", "content": SENT}]})
    headers = {"X-Clew-Conversation": "talk", "Content-Type": "application/json"}
    answer = await server.http.post("/v1/chat/completions", content=body, headers=headers)
    assert answer.status_code == 200
    assert await said(server) == asked(provider) == STORED


async def test_over_the_messages_endpoint(server: Server, provider: FakeProvider) -> None:
    answer = await server.http.post(
        "/api/conversations/talk/messages",
        content=json.dumps({"text": SENT}),
        headers={"Content-Type": "application/json"},
    )
    assert answer.status_code == 202
    await server.engine.wait_until_idle()
    assert await said(server) == asked(provider) == STORED


async def test_over_json_rpc(server: Server, provider: FakeProvider) -> None:
    async with client(over_socket(server)) as one:
        await one.call(methods.OPEN, OpenParams(conversation="talk"))
        await one.call(methods.SUBMIT, SubmitParams(session_id="talk", text=SENT))
        await server.engine.wait_until_idle()
    assert await said(server) == asked(provider) == STORED


async def test_from_a_channel(store_url: str, tmp_path: Path) -> None:
    platform = MemoryPlatform()
    async with memory_desk(store_url, tmp_path, platform) as desk:
        platform.post_message(SENT)
        await until(desk.texts)
        await desk.quiet()
        found = await desk.world.engine.list_conversations(limit=10)
        (conversation,) = found.items
        first = (await desk.world.engine.read_entries(conversation.id))[0]
        assert first.text == STORED


@pytest.mark.parametrize("way", ["argument", "standard input"])
def test_at_the_command_line(
    tmp_path: Path,
    provider: FakeProvider,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    way: str,
) -> None:
    model = f"model.base_url={provider.openai_url}"
    command = ["--home", str(tmp_path), "--set", "model.name=openai-chat:fake", "--set", model]
    # A terminal hands over no surrogates, and no argument can hold a NUL.
    if way == "argument":
        text, wanted = KEPT, KEPT
        assert entry_point.run_command([*command, "chat", text]) == 0
    else:
        text, wanted = f"{KEPT}\x00p", f"{KEPT}\ufffdp"
        stdin = io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8", newline="")
        monkeypatch.setattr("sys.stdin", stdin)
        assert entry_point.run_command([*command, "chat"]) == 0
    capsys.readouterr()
    assert asked(provider).split() == wanted.split()
    assert asked(provider) == wanted


async def test_an_answer_is_sent_as_it_is_stored(server: Server) -> None:
    """The names of conversations and titles follow the same rule, and stay findable."""
    body = json.dumps({"title": f"Crete\x00 {chr(7)}"})
    await server.say("hello")
    renamed = await server.http.post(
        "/api/conversations/talk/rename",
        content=body,
        headers={"Content-Type": "application/json"},
    )
    assert renamed.json()["title"].startswith("Crete\ufffd")
