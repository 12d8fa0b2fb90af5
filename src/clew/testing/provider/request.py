"""Requests as a script sees them, independent of the wire format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from clew.record import Record
from clew.testing.provider.replies import Reply

WireFormat: TypeAlias = Literal["chat", "responses", "messages"]
MessageRole: TypeAlias = Literal["system", "user", "assistant", "tool"]


class SeenCall(Record):
    """A tool call in the history of a request; ``arguments`` is JSON text."""

    id: str
    name: str
    arguments: str


class SeenResult(Record):
    """A tool result in the history of a request."""

    call_id: str
    text: str


class ProviderMessage(Record):
    """One message of a request; each text part is a separate text."""

    role: MessageRole
    texts: tuple[str, ...] = ()
    calls: tuple[SeenCall, ...] = ()
    results: tuple[SeenResult, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


class ProviderRequest(Record):
    """One model request."""

    #: Counts from 1 for the lifetime of the server.
    number: int
    format: WireFormat
    model: str
    messages: tuple[ProviderMessage, ...]
    #: The names of the offered tools.
    tools: tuple[str, ...]
    stream: bool
    #: The number of earlier requests with the same first user text, retries included.
    earlier_requests: int
    raw: Mapping[str, Any]

    @property
    def system_text(self) -> str:
        return "\n".join(m.text for m in self.messages if m.role == "system")

    @property
    def user_texts(self) -> tuple[str, ...]:
        return tuple(text for m in self.messages if m.role == "user" for text in m.texts)

    @property
    def last_user_text(self) -> str:
        return self.user_texts[-1] if self.user_texts else ""

    @property
    def new_results(self) -> tuple[SeenResult, ...]:
        """Return the tool results after the last assistant message."""
        last = max((i for i, m in enumerate(self.messages) if m.role == "assistant"), default=-1)
        return tuple(result for m in self.messages[last + 1 :] for result in m.results)

    @property
    def input_tokens(self) -> int:
        """Return the tokens of the messages, at four characters each."""
        size = sum(_count_characters(message) for message in self.messages)
        return max(1, size // 4)


def _count_characters(message: ProviderMessage) -> int:
    calls = sum(len(call.name) + len(call.arguments) for call in message.calls)
    results = sum(len(result.text) for result in message.results)
    return sum(map(len, message.texts)) + calls + results


Script: TypeAlias = Callable[[ProviderRequest], Reply]
