"""Recorded requests of a client, played as the client would send them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openai.types import Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response as OpenAIResponse
from pydantic import TypeAdapter

if TYPE_CHECKING:
    from collections.abc import Sequence

    import httpx2

RECORDED = Path(__file__).parent / "recorded"
_MODELS: TypeAdapter[list[Model]] = TypeAdapter(list[Model])


@dataclass(frozen=True, kw_only=True)
class Answered:
    """A request of the client with the text that it shows as the answer."""

    asked: str
    text: str
    conversation: str


@dataclass(frozen=True)
class Recording:
    """What one program sent."""

    name: str
    told: dict[str, Any]

    @property
    def requests(self) -> list[dict[str, Any]]:
        return self.told["requests"]

    @property
    def is_refused(self) -> bool:
        return self.told["conversations"] == 0


def read_recordings() -> list[Recording]:
    paths = sorted(RECORDED.glob("*.json"))
    return [Recording(path.stem, json.loads(path.read_text())) for path in paths]


@dataclass
class Player:
    """The client: it sends its requests, with the answers that it got in their places."""

    http: httpx2.Client
    turns: list[Answered] = field(default_factory=list[Answered])
    #: Titles, tags and the like.
    asides: list[Answered] = field(default_factory=list[Answered])

    def play(self, requests: Sequence[dict[str, Any]]) -> None:
        for request in requests:
            response = self.send(request)
            assert response.status_code == request["status"], response.text
            if request["method"] == "GET":
                check_models(response)
            elif response.status_code == 200:
                answered = read_answer(request, response)
                (self.asides if request.get("side") else self.turns).append(answered)

    def send(self, request: dict[str, Any]) -> httpx2.Response:
        body = json.dumps(request.get("body"))
        for number, turn in enumerate(self.turns, 1):
            body = body.replace(f"{{answer {number}}}", json.dumps(turn.text)[1:-1])
        content = body if "body" in request else None
        return self.http.request(
            request["method"], request["path"], content=content, headers=request["headers"]
        )


def check_models(response: httpx2.Response) -> None:
    listed = response.json()
    assert listed["object"] == "list"
    assert "clew" in [model.id for model in _MODELS.validate_python(listed["data"])]


def read_answer(request: dict[str, Any], response: httpx2.Response) -> Answered:
    """Return the answer, which has the shape of the official types."""
    body = request["body"]
    if request["path"].endswith("/responses"):
        told = OpenAIResponse.model_validate(response.json())
        assert told.conversation is not None
        return Answered(
            asked=_asked(body["input"]), text=told.output_text, conversation=told.conversation.id
        )
    text = _streamed_text(body, response) if body["stream"] else _plain_text(response)
    return Answered(
        asked=_asked(body["messages"]),
        text=text,
        conversation=response.headers["X-Clew-Conversation"],
    )


def _asked(messages: Sequence[dict[str, Any]]) -> str:
    content = [each["content"] for each in messages if each["role"] == "user"][-1]
    if isinstance(content, str):
        return content.strip()
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def _plain_text(response: httpx2.Response) -> str:
    completion = ChatCompletion.model_validate(response.json())
    assert completion.usage is not None
    assert [choice.finish_reason for choice in completion.choices] == ["stop"]
    return completion.choices[0].message.content or ""


def _streamed_text(body: dict[str, Any], response: httpx2.Response) -> str:
    """Return the text of a stream, which ends as the client's options ask for."""
    assert response.headers["content-type"].startswith("text/event-stream")
    *events, end = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert end == "[DONE]"
    chunks = [ChatCompletionChunk.model_validate_json(event) for event in events]
    assert len({chunk.id for chunk in chunks}) == 1
    wants_usage = body.get("stream_options") == {"include_usage": True}
    assert [chunk.usage is not None for chunk in chunks[:-1]] == [False] * (len(chunks) - 1)
    assert (chunks[-1].usage is not None) == wants_usage
    choices = [choice for chunk in chunks for choice in chunk.choices]
    assert [choice.finish_reason for choice in choices if choice.finish_reason] == ["stop"]
    return "".join(choice.delta.content or "" for choice in choices)
