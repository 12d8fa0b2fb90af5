"""Pydantic AI as a client: an agent of somebody else's whose model is Clew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from clew.testing import FakeProvider, count_user_texts
from tests.integration.api_server import running, settings_for

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("kind", [OpenAIChatModel, OpenAIResponsesModel])
async def test_it_is_answered_streamed_and_continues(
    tmp_path: Path, kind: type[OpenAIChatModel | OpenAIResponsesModel]
) -> None:
    with FakeProvider(count_user_texts) as provider:
        settings = settings_for(tmp_path, provider=provider)
        async with running(settings) as server, server.openai() as client:
            own = OpenAIProvider(openai_client=client)
            agent = Agent(kind("clew", provider=own), instructions="Be brief.")
            first = await agent.run("hello")
            assert first.output == "turn 1: I have seen: hello"
            async with agent.run_stream("again", message_history=first.all_messages()) as streamed:
                pieces = [piece async for piece in streamed.stream_text(delta=True)]
            assert "".join(pieces) == "turn 2: I have seen: hello | again"
