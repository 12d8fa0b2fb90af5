"""Clients that offer another protocol are served all the same, with their whole body."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from clew.testing import FakeProvider, count_user_texts
from tests.integration.api_server import Server, running, settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

BODY = json.dumps({"model": "clew", "messages": [{"role": "user", "content": "hello"}]}).encode()

#: As Java's HttpClient sends it, and ``curl --http2``; a WebSocket offer where none can be.
OFFERS = {
    "java": ["Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAEAAEAA", "Upgrade: h2c"],
    "curl": ["connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "http2-settings: AAMAAABk"],
    "websocket": ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
    "tls": ["Connection: upgrade", "Upgrade: TLS/1.0, HTTP/1.1"],
}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[Server]:
    with FakeProvider(count_user_texts) as provider:
        async with running(settings_for(tmp_path, provider=provider, token=None)) as found:
            yield found


def request(offer: list[str], *, chunked: bool = False) -> bytes:
    framing = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(BODY)}"
    head = ["POST /v1/chat/completions HTTP/1.1", "Host: 127.0.0.1", *offer, framing]
    head += ["Content-Type: application/json", "X-Clew-Conversation: talk", "", ""]
    body = f"{len(BODY):x}\r\n".encode() + BODY + b"\r\n0\r\n\r\n" if chunked else BODY
    return "\r\n".join(head).encode() + body


async def exchanged(server: Server, pieces: list[bytes], *, count: int = 1) -> list[str]:
    """Send pieces one by one; the texts of the answers."""
    url = urlsplit(str(server.http.base_url))
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0)
    texts: list[str] = []
    async with asyncio.timeout(120):
        for _ in range(count):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            assert head.startswith("http/1.1 200"), head
            length = int(head.partition("content-length: ")[2].split("\r\n")[0])
            answer = json.loads(await reader.readexactly(length))
            texts.append(answer["choices"][0]["message"]["content"])
    writer.close()
    return texts


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
@pytest.mark.parametrize("name", OFFERS)
async def test_a_post_with_an_offer_keeps_its_body(
    server: Server, name: str, chunked: bool
) -> None:
    sent = request(OFFERS[name], chunked=chunked)
    assert await exchanged(server, [sent]) == ["turn 1: I have seen: hello"]


async def test_a_request_in_single_bytes_keeps_its_body(server: Server) -> None:
    sent = request(OFFERS["java"])
    assert await exchanged(server, [sent[n : n + 1] for n in range(len(sent))]) == [
        "turn 1: I have seen: hello"
    ]


async def test_the_next_requests_of_a_connection_are_served_too(server: Server) -> None:
    sent = request(OFFERS["java"]) + request([]) + request(OFFERS["curl"])
    texts = await exchanged(server, [sent], count=3)
    assert [text.split(":")[0] for text in texts] == ["turn 1", "turn 2", "turn 3"]


async def test_expect_is_answered_beside_an_offer(server: Server) -> None:
    url = urlsplit(str(server.http.base_url))
    head, _, body = request([*OFFERS["java"], "Expect: 100-continue"]).partition(b"\r\n\r\n")
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write(head + b"\r\n\r\n")
    async with asyncio.timeout(120):
        assert b" 100 " in await reader.readuntil(b"\r\n\r\n")
        writer.write(body)
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
    writer.close()


async def test_thousands_of_offers_in_one_packet_are_ignored_one_by_one(server: Server) -> None:
    offer = (
        "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    )
    url = urlsplit(str(server.http.base_url))
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write(offer.encode() * 2000)
    async with asyncio.timeout(120):
        for _ in range(2000):
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            await reader.readexactly(len(b'{"status":"ok"}'))
    writer.close()
