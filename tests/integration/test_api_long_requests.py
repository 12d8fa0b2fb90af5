"""Requests of very many short messages, which stop nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.testing import FakeProvider, Text
from tests.integration.api_server import always, running, settings_for

if TYPE_CHECKING:
    from pathlib import Path


async def test_ten_thousand_messages_in_a_row_are_sent_as_one(tmp_path: Path) -> None:
    texts = [f"{number}" for number in range(10_000)]
    said = [{"role": "user", "content": text} for text in texts]
    with FakeProvider(always(Text("yes"))) as provider:
        async with running(settings_for(tmp_path, provider=provider)) as server:
            # Where each message copied those before it, this took minutes.
            answer = await server.http.post("/v1/responses", json={"input": said}, timeout=60)
        assert answer.status_code == 200
        (request,) = provider.requests
        assert request.json is not None
        assert request.json["messages"][-1]["content"] == "\n\n".join(texts)
