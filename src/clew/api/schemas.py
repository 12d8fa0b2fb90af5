"""What clients send, as models: they check the requests and describe them in ``/openapi.json``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from clew.api.body import Body


class Part(Body):
    """A piece of a message's content."""

    type: str
    text: str | None = None


class ChatMessage(Body):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None
    tool_calls: list[dict[str, object]] | None = None


class StreamOptions(Body):
    include_usage: bool | None = None


class ResponseFormat(Body):
    type: str


class ChatRequest(Body):
    """
    A request for a chat completion. Sampling settings are the agent's own: fields that are not
    listed are accepted and have no effect.
    """

    model: str | None = None
    messages: list[ChatMessage] = Field(min_length=1)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    tools: list[dict[str, object]] | None = None
    functions: list[dict[str, object]] | None = None
    response_format: ResponseFormat | None = None
