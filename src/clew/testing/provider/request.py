"""A request as a script sees it: the same whatever the wire format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from clew.testing.provider.replies import Reply

Format: TypeAlias = Literal["chat", "responses", "messages"]
Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenCall:
    """A tool call in the history of a request; ``arguments`` is JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenResult:
    """A tool result in the history of a request."""

    call_id: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message of a request; each text part is a text of its own."""

    role: Role
    texts: tuple[str, ...] = ()
    calls: tuple[SeenCall, ...] = ()
    results: tuple[SeenResult, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One request for an answer."""

    #: Counts from 1 over the life of the server.
    number: int
    format: Format
    model: str
    messages: tuple[Message, ...]
    #: The names of the tools on offer.
    tools: tuple[str, ...]
    stream: bool
    #: How many earlier requests of this server began with the same user text: a retry counts.
    earlier: int
    raw: Mapping[str, Any]

    @property
    def system(self) -> str:
        return "\n".join(m.text for m in self.messages if m.role == "system")

    @property
    def user_texts(self) -> tuple[str, ...]:
        return tuple(text for m in self.messages if m.role == "user" for text in m.texts)

    @property
    def last_user_text(self) -> str:
        return self.user_texts[-1] if self.user_texts else ""

    @property
    def results(self) -> tuple[SeenResult, ...]:
        """The tool results that came after the last answer."""
        last = max((i for i, m in enumerate(self.messages) if m.role == "assistant"), default=-1)
        return tuple(result for m in self.messages[last + 1 :] for result in m.results)

    @property
    def input_tokens(self) -> int:
        """The tokens of the messages, by the rule of this provider: four characters each."""
        size = sum(_size(message) for message in self.messages)
        return max(1, size // 4)


def _size(message: Message) -> int:
    calls = sum(len(call.name) + len(call.arguments) for call in message.calls)
    results = sum(len(result.text) for result in message.results)
    return sum(map(len, message.texts)) + calls + results


Script: TypeAlias = Callable[[Request], Reply]
