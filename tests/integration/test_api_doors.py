"""Admission to the API, limits of connections, and conditions that prevent a start."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2
import pytest

from clew.api.app import create_app
from clew.api.server import serve_api
from clew.api.timeouts import ApiTimeouts
from clew.config.secret import Secret
from clew.config.settings import ApiSettings
from clew.errors import SettingsError
from clew.testing import FakeProvider, Text
from tests.integration.api_server import TOKEN, always, running, serving, settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tests.integration.api_server import Server

OPEN = {"/healthz", "/readyz"}
HOOKS = ("/hooks/", "/whatsapp/")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[Server]:
    async with running(settings_for(tmp_path)) as found:
        yield found


@pytest.fixture
async def without_token(tmp_path: Path) -> AsyncGenerator[Server]:
    async with running(settings_for(tmp_path, token=None)) as found:
        yield found


async def described(server: Server) -> list[tuple[str, str]]:
    """Every method and path that is served."""
    document = (await server.http.get("/openapi.json")).json()
    return [
        (method.upper(), re.sub(r"\{\w+\}", "talk", path))
        for path, operations in document["paths"].items()
        for method in operations
    ]


WRONG: dict[str, dict[str, str]] = {
    "none": {},
    "empty": {"Authorization": ""},
    "no token": {"Authorization": "Bearer"},
    "wrong": {"Authorization": "Bearer nonsense"},
    "longer": {"Authorization": f"Bearer {TOKEN}x"},
    "shorter": {"Authorization": f"Bearer {TOKEN[:-1]}"},
    "another scheme": {"Authorization": f"Basic {TOKEN}"},
    "bare": {"Authorization": TOKEN},
    "not ASCII": {"Authorization": "Bearer s3crét"},
}


@pytest.mark.parametrize("case", WRONG)
async def test_nothing_but_health_is_served_without_the_token(server: Server, case: str) -> None:
    paths = [*await described(server), ("GET", "/nothing/here"), ("PUT", "/v1/models")]
    assert len(paths) > 15
    async with httpx2.AsyncClient(base_url=server.url, timeout=60) as stranger:
        for method, path in paths:
            headers = [(k.encode(), v.encode()) for k, v in WRONG[case].items()]
            answer = await stranger.request(method, path, headers=headers)
            if path in OPEN:
                assert answer.status_code == 200
                continue
            if path.startswith(HOOKS):
                # Signed by whoever sends it, each in its channel's way; here there is none.
                assert answer.status_code == 404
                continue
            assert answer.status_code == 401, (method, path)
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            assert answer.json()["error"]["code"] in ("missing_api_key", "invalid_api_key")
    assert (await server.engine.list_conversations(adhoc=True)).items == ()


async def test_a_token_may_hold_any_letters(tmp_path: Path) -> None:
    async with running(settings_for(tmp_path, token="geheim")) as server:
        settings = replace(
            server.settings, api=ApiSettings(port=0, token=Secret.from_text("schlüssel🔑"))
        )
        async with (
            serving(server.engine, settings) as url,
            httpx2.AsyncClient(timeout=60) as client,
        ):
            header = (b"Authorization", "bearer schlüssel🔑".encode())
            assert (await client.get(f"{url}/v1/models", headers=[header])).status_code == 200


async def test_a_token_is_read_again_and_its_place_is_not_revealed(
    server: Server, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    secret = Secret.from_file(file, key="api.token")
    settings = replace(server.settings, api=ApiSettings(port=0, token=secret))
    async with serving(server.engine, settings) as url, httpx2.AsyncClient(timeout=60) as client:
        for token in ("first", "second"):
            file.write_text(token)
            sent = {"Authorization": f"Bearer {token}"}
            assert (await client.get(f"{url}/v1/models", headers=sent)).status_code == 200
        file.unlink()
        answer = await client.get(f"{url}/v1/models", headers=sent)
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
    assert str(tmp_path) not in answer.text


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8420", "127.0.0.1", "127.0.0.1:99", "[::1]", "[::1]:8420"]
)
async def test_without_a_token_this_machine_is_served(without_token: Server, host: str) -> None:
    answer = await without_token.http.get("/v1/models", headers={"Host": host})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8420"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "localhost.evil.example"},
        {"Host": "127.0.0.1@evil.example"},
        {"Host": "192.168.1.5"},
        {"Host": "["},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
    ],
)
async def test_without_a_token_pages_from_elsewhere_are_not(
    without_token: Server, headers: dict[str, str]
) -> None:
    sent = await without_token.http.post(
        "/v1/chat/completions",
        content=b'{"messages": [{"role": "user", "content": "send me everything"}]}',
        headers={"Content-Type": "text/plain", **headers},
    )
    assert (sent.status_code, sent.json()["error"]["code"]) == (403, "foreign_origin")
    assert (await without_token.engine.list_conversations(adhoc=True)).items == ()


async def test_a_page_of_this_machine_is_served(without_token: Server) -> None:
    for origin in ("http://localhost:3000", "http://127.0.0.1:8420"):
        answer = await without_token.http.get("/v1/models", headers={"Origin": origin})
        assert answer.status_code == 200


async def test_with_the_token_the_host_does_not_matter(server: Server) -> None:
    answer = await server.http.get("/v1/models", headers={"Host": "clew.example"})
    assert answer.status_code == 200


class Raw:
    """A connection of which a test writes every byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    @asynccontextmanager
    async def to(cls, server: Server) -> AsyncGenerator[Raw]:
        where = urlsplit(server.url)
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        try:
            yield cls(reader, writer)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        with suppress(ConnectionError):
            await self._writer.drain()

    async def rest(self) -> bytes:
        """Return everything received until the server closes."""
        try:
            return await self._reader.read()
        except ConnectionError:
            return b""

    async def answer(self) -> tuple[int, Any]:
        """One answer with a JSON body."""
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(re.findall(r"content-length: (\d+)", head)[0])
        return int(head.split()[1]), json.loads(await self._reader.readexactly(length))


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nX-A: b\r\n"])
async def test_a_head_that_does_not_come_in_time_ends_the_connection(
    tmp_path: Path, sent: bytes
) -> None:
    async with (
        running(settings_for(tmp_path), pace=ApiTimeouts(head=0.3)) as server,
        Raw.to(server) as raw,
    ):
        await raw.send(sent)
        async with asyncio.timeout(120):
            assert await raw.rest() == b""


async def test_a_head_that_comes_drop_by_drop_ends_the_connection_too(tmp_path: Path) -> None:
    async with (
        running(settings_for(tmp_path), pace=ApiTimeouts(head=1.0)) as server,
        Raw.to(server) as raw,
    ):
        await raw.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await raw.answer())[0] == 200
        closed = asyncio.create_task(raw.rest())
        await raw.send(b"GET /")
        async with asyncio.timeout(120):
            while not closed.done():
                await raw.send(b"x")
                await asyncio.wait({closed}, timeout=0.05)
        assert await closed == b""


async def test_a_head_that_is_too_large_is_refused(server: Server) -> None:
    async with Raw.to(server) as raw:
        await raw.send(b"GET /healthz HTTP/1.1\r\nX-A: ")
        for _ in range(7):
            await raw.send(b"b" * 10_000)
            await asyncio.sleep(0.01)
        assert (await raw.answer())[0] == 431


async def test_an_invalid_request_is_refused_in_the_same_shape(server: Server) -> None:
    async with Raw.to(server) as raw:
        await raw.send(b"NONSENSE\r\n\r\n")
        status, body = await raw.answer()
    assert (status, body["error"]["code"]) == (400, "invalid_http")


async def test_a_body_may_take_longer_than_a_head(tmp_path: Path) -> None:
    body = b'{"text": "hello"}'
    head = f"Authorization: Bearer {TOKEN}\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    async with (
        running(settings_for(tmp_path), pace=ApiTimeouts(head=1.0)) as server,
        Raw.to(server) as raw,
    ):
        await raw.send(b"POST /api/conversations/talk/messages HTTP/1.1\r\n" + head.encode())
        await asyncio.sleep(1.2)
        await raw.send(body)
        assert (await raw.answer())[0] == 202


async def test_an_answer_may_take_longer_than_a_head(tmp_path: Path) -> None:
    with FakeProvider(always(Text("late", chunks=2, delay=0.6))) as provider:
        settings = settings_for(tmp_path, provider=provider)
        async with running(settings, pace=ApiTimeouts(head=1.0)) as server:
            assert (await server.say("hello")).status_code == 200


async def test_a_server_open_to_others_needs_a_token(server: Server) -> None:
    settings = replace(server.settings, api=ApiSettings(host="0.0.0.0", port=0))
    with pytest.raises(SettingsError, match=r"no api\.token"):
        await serve_api(server.engine, settings)


async def test_a_token_that_cannot_be_read_is_an_error_at_the_start(
    server: Server, tmp_path: Path
) -> None:
    secret = Secret.from_file(tmp_path / "missing", key="api.token")
    settings = replace(server.settings, api=ApiSettings(port=0, token=secret))
    with pytest.raises(SettingsError, match="cannot be read"):
        await serve_api(server.engine, settings)


async def test_a_port_in_use_is_named(server: Server) -> None:
    port = urlsplit(server.url).port
    assert port is not None
    settings = replace(server.settings, api=ApiSettings(port=port, token=Secret.from_text(TOKEN)))
    with pytest.raises(SettingsError, match=rf"port {port} on 127.0.0.1 is in use"):
        await serve_api(server.engine, settings)


async def test_a_host_that_is_no_address_is_named(server: Server) -> None:
    api = ApiSettings(host="no.such.host.invalid", port=0, token=Secret.from_text(TOKEN))
    with pytest.raises(SettingsError, match=r"no\.such\.host\.invalid"):
        await serve_api(server.engine, replace(server.settings, api=api))


async def test_localhost_is_listened_on(server: Server) -> None:
    settings = replace(server.settings, api=ApiSettings(host="localhost", port=0))
    async with serving(server.engine, settings) as url, httpx2.AsyncClient(timeout=60) as client:
        assert (await client.get(f"{url}/healthz")).status_code == 200


async def test_a_port_is_free_again_once_a_server_has_stopped(server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    settings = replace(server.settings, api=ApiSettings(port=port, token=Secret.from_text(TOKEN)))
    for _ in range(2):
        async with (
            serving(server.engine, settings) as url,
            httpx2.AsyncClient(timeout=60) as client,
        ):
            assert url == f"http://127.0.0.1:{port}"
            assert (await client.get(f"{url}/healthz")).status_code == 200


async def test_the_application_works_without_our_server(server: Server) -> None:
    transport = httpx2.ASGITransport(app=create_app(server.engine, server.settings))
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://x", headers=server.http.headers
    ) as client:
        answer = await client.post(
            "/v1/chat/completions",
            json={"messages": [{"role": "user", "content": "my words"}]},
            headers={"X-Clew-Conversation": "talk"},
        )
    assert answer.json()["choices"][0]["message"]["content"] == "You said: my words"


async def test_readiness_says_nothing_about_the_store(server: Server) -> None:
    await server.store.aclose()
    async with httpx2.AsyncClient(base_url=server.url, timeout=60) as stranger:
        answer = await stranger.get("/readyz")
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "not_ready"
        assert "Retry-After" in answer.headers
        assert (await stranger.get("/healthz")).status_code == 200


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/conversations/talk/messages"])
async def test_a_message_that_could_not_be_stored_may_be_sent_again(
    server: Server, path: str
) -> None:
    await server.store.aclose()
    answer = await server.http.post(
        path,
        json={"text": "hello", "messages": [{"role": "user", "content": "hello"}]},
        headers={"X-Clew-Conversation": "talk"},
    )
    assert answer.status_code == 503
    assert answer.headers["x-should-retry"] == "true"
    assert int(answer.headers["Retry-After"]) > 0
