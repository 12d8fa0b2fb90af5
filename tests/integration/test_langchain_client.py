"""LangChain as a client: its chat model, whose server is Clew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from openai import BadRequestError
from pydantic import SecretStr

from clew.testing import FakeProvider, count_user_texts
from tests.integration.api_server import TOKEN, Server, running, settings_for

if TYPE_CHECKING:
    from pathlib import Path


def _make_model(server: Server) -> ChatOpenAI:
    return ChatOpenAI(
        model="clew",
        base_url=f"{server.url}/v1",
        api_key=SecretStr(TOKEN),
        timeout=60,
        max_retries=0,
    )


async def test_it_is_answered_streamed_and_goes_on_in_one_conversation(tmp_path: Path) -> None:
    with FakeProvider(count_user_texts) as provider:
        async with running(settings_for(tmp_path, provider=provider)) as server:
            model = _make_model(server)
            said: list[BaseMessage] = [SystemMessage("Be brief."), HumanMessage("hello")]
            first = await model.ainvoke(said)
            assert first.text == "turn 1: I have seen: hello"
            said += [AIMessage(first.text), HumanMessage("again")]
            pieces = [piece.text async for piece in model.astream(said)]
            assert "".join(pieces) == "turn 2: I have seen: hello | again"
            assert len(pieces) > 1


async def test_its_tools_are_refused_with_a_sentence(tmp_path: Path) -> None:
    with FakeProvider(count_user_texts) as provider:
        async with running(settings_for(tmp_path, provider=provider)) as server:
            function = {"name": "add", "description": "Add.", "parameters": {"type": "object"}}
            tools = [{"type": "function", "function": function}]
            with pytest.raises(BadRequestError, match="tools"):
                await _make_model(server).ainvoke([HumanMessage("hello")], tools=tools)
