"""
The bare skeleton: what a turn costs with none of our features.

``python -m bench.skeleton --db FILE --provider URL --port N`` serves ``/v1/chat/completions`` with
starlette, apsw and Pydantic AI: the stored messages of the conversation in the header, one run, two
durable rows.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

import apsw
import uvicorn
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from pydantic_ai.messages import ModelMessage
    from starlette.requests import Request
    from starlette.responses import Response


_SCHEMA = """
    PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    CREATE TABLE message (n INTEGER PRIMARY KEY, conversation TEXT, body BLOB);
    CREATE INDEX by_conversation ON message (conversation, n);
"""


class Skeleton:
    def __init__(self, path: str, provider: str) -> None:
        # Typed loosely: the driver's types name what is not there on this Python.
        self._database: Any = apsw.Connection(path)
        self._database.execute(_SCHEMA).fetchall()
        client = AsyncOpenAI(base_url=provider, api_key="none", max_retries=0)
        model = OpenAIChatModel("fake-model", provider=OpenAIProvider(openai_client=client))
        self._agent = Agent(model)

    async def answer(self, request: Request) -> Response:
        body = await request.json()
        conversation = request.headers["x-clew-conversation"]
        prompt = body["messages"][-1]["content"]
        if body.get("stream"):
            return StreamingResponse(
                self._streamed(conversation, prompt), media_type="text/event-stream"
            )
        result = await self._agent.run(prompt, message_history=self._history(conversation))
        self._store(conversation, result.new_messages())
        message = {"role": "assistant", "content": result.output}
        return JSONResponse(
            {"object": "chat.completion", "choices": [{"index": 0, "message": message}]}
        )

    async def _streamed(self, conversation: str, prompt: str) -> AsyncIterator[str]:
        history = self._history(conversation)
        async with self._agent.run_stream(prompt, message_history=history) as result:
            async for text in result.stream_text(delta=True, debounce_by=None):
                yield f"data: {json.dumps({'choices': [{'delta': {'content': text}}]})}\n\n"
            self._store(conversation, result.new_messages())
        yield "data: [DONE]\n\n"

    def _history(self, conversation: str) -> list[ModelMessage]:
        rows = self._database.execute(
            "SELECT body FROM message WHERE conversation = ? ORDER BY n", (conversation,)
        )
        return [
            message
            for row in rows
            for message in ModelMessagesTypeAdapter.validate_json(_bytes(row[0]))
        ]

    def _store(self, conversation: str, messages: Sequence[ModelMessage]) -> None:
        with self._database:
            for message in messages:
                body = ModelMessagesTypeAdapter.dump_json([message])
                self._database.execute(
                    "INSERT INTO message (conversation, body) VALUES (?, ?)", (conversation, body)
                )


def _bytes(value: Any) -> bytes:
    assert isinstance(value, bytes)
    return value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--db", "--provider", "--port"):
        parser.add_argument(name, required=True)
    given = parser.parse_args()
    skeleton = Skeleton(given.db, given.provider)
    app = Starlette(routes=[Route("/v1/chat/completions", skeleton.answer, methods=["POST"])])
    uvicorn.run(app, host="127.0.0.1", port=int(given.port), log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
