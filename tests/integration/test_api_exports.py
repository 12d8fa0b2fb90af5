"""A conversation as a file, over HTTP and JSON-RPC."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clew.testing import FakeProvider, count_user_texts
from clew.wire import methods
from clew.wire.params import ExportParams
from tests.exported import verified
from tests.integration.api_server import running, settings_for
from tests.integration.rpc_clients import client, over_pipe
from tests.integration.test_api_conversations import problem

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    from tests.integration.api_server import Server

EVIL = '<script>alert(1)</script> <img src="https://evil.example/a.png"> \u202egnp'


#: Long enough to be looked for in texts.
TOKEN = "s3cret-of-exports"


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(count_user_texts) as fake:
        yield fake


@pytest.fixture
async def server(tmp_path: Path, provider: FakeProvider, store_url: str) -> AsyncGenerator[Server]:
    settings = settings_for(tmp_path, provider=provider, store_url=store_url, token=TOKEN)
    async with running(settings) as found:
        yield found


async def test_a_conversation_is_sent_as_a_file_of_each_form(server: Server) -> None:
    await server.say(f"{EVIL} and my key {TOKEN}")
    await server.http.post("/api/conversations/talk/rename", json={"title": "Ro/ses: “red”"})
    files = {
        form: await server.http.get(f"/api/conversations/talk/export?format={form}")
        for form in ("html", "markdown", "json")
    }
    for form, suffix in (("html", "html"), ("markdown", "md"), ("json", "jsonl")):
        answer = files[form]
        assert answer.status_code == 200
        assert answer.headers["content-disposition"] == (
            f"attachment; filename*=UTF-8''Roses%20red.{suffix}"
        )
        assert TOKEN not in answer.text
        assert "and my key ********" in answer.text
    page = files["html"]
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-security-policy"].startswith("sandbox;")
    assert "<title>Ro/ses: “red”</title>" in page.text
    assert "&lt;script&gt;alert(1)" in page.text
    for forbidden in ("<script", "<img", "\u202e", "<link", "url("):
        assert forbidden not in page.text
    verified(files["json"].content)
    default = await server.http.get("/api/conversations/talk/export")
    assert default.headers["content-type"] == page.headers["content-type"]


async def test_the_same_file_comes_over_json_rpc(server: Server) -> None:
    await server.say("one")
    sent = await server.http.get("/api/conversations/talk/export?format=markdown")
    async with client(over_pipe(server)) as found:
        given = ExportParams(conversation="talk", format="markdown")
        file = await found.call(methods.EXPORT, given)
    # The head has the state of the moment.
    messages = [text[text.index("\n### ") :] for text in (file.content, sent.text)]
    assert messages[0] == messages[1]
    assert file.file_name.endswith(".md")
    assert file.media_type == sent.headers["content-type"]


async def test_what_cannot_be_exported_is_refused(server: Server) -> None:
    assert problem(await server.http.get("/api/conversations/none/export"), 404)
    await server.say("one")
    wrong = await server.http.get("/api/conversations/talk/export?format=pdf")
    assert problem(wrong, 400)["param"] == "format"
