"""
Turns taken: what is sent to a model alternates between the person and the model.

Many chat templates refuse anything else, with every later request of the conversation. The store
keeps what was said as it was said; here it is put into that order, as a function of nothing else.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import (
    CompactionPart,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    UserPromptPart,
)
from pydantic_ai.models import (
    _sendable_request_parts,  # pyright: ignore[reportPrivateUsage]  (no public word for it)
)

from clew.agent.messages import is_stand_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic_ai.messages import ModelMessage, UserContent
    from pydantic_ai.models import Model

__all__ = ["alternating", "send_alternating"]

#: Before the words of the model where a conversation begins with them.
_BEGAN = "The assistant began: "


def send_alternating(model: Model) -> None:
    """Let a model send nothing that does not alternate, whoever asks it."""
    model.__class__ = _alternating_class(type(model))


@cache
def _alternating_class(cls: type[Model]) -> type[Model]:
    def prepare_messages(self: Any, messages: Any, *rest: Any, **named: Any) -> list[ModelMessage]:
        # Not `super()`: the class is made here.
        prepared = alternating(cls.prepare_messages(self, messages, *rest, **named))
        return _without_unsigned_thinking(prepared) if self.system == "anthropic" else prepared

    return type(cls.__name__, (cls,), {"prepare_messages": prepare_messages})


def _without_unsigned_thinking(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """
    Leave out thinking that Anthropic's format cannot carry, since no provider of it has signed it.

    The library would send it as a message of the person, so that two of theirs follow each other.
    """
    return [
        replace(message, parts=[part for part in message.parts if not _is_unsigned(part)])
        if isinstance(message, ModelResponse) and any(map(_is_unsigned, message.parts))
        else message
        for message in messages
    ]


def _is_unsigned(part: object) -> bool:
    return isinstance(part, ThinkingPart) and not part.signature


def alternating(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """
    Return the messages so that the person begins and no two of one side follow each other.

    Neighbours of one side become one message. Where the model begins, its words are told as the
    person's; a response that says nothing is left out.
    """
    if _alternates(messages):
        return list(messages)
    taken: list[ModelMessage] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            _take_response(taken, message)
        else:
            _take_request(taken, message)
    return [_with_one_text(message) for message in taken]


def _alternates(messages: Sequence[ModelMessage]) -> bool:
    if messages and not any(_is_spoken(part) for part in messages[0].parts):
        return False
    request = True
    for message in messages:
        if isinstance(message, ModelRequest) is not request:
            return False
        if request and len(message.parts) > 1 and _texts(message.parts) > 1:
            return False
        if not request and not _says(message):
            return False
        request = not request
    return True


def _texts(parts: Iterable[object]) -> int:
    return sum(isinstance(part, (UserPromptPart, CompactionPart)) for part in parts)


def _says(message: ModelMessage) -> bool:
    return any(not isinstance(part, ThinkingPart) for part in message.parts)


def _take_request(taken: list[ModelMessage], message: ModelRequest) -> None:
    if taken and isinstance(before := taken[-1], ModelRequest):
        taken[-1] = replace(message, parts=[*before.parts, *message.parts])
    else:
        taken.append(message)


def _take_response(taken: list[ModelMessage], message: ModelResponse) -> None:
    if not _says(message):
        return
    if not any(_is_spoken(part) for request in taken for part in request.parts):
        text = "\n\n".join(p.content for p in message.parts if isinstance(p, TextPart))
        _take_request(taken, ModelRequest(parts=[UserPromptPart(_BEGAN + text)]))
    elif is_stand_in(taken[-1]):
        # The answer came after all.
        taken[-1] = message
    elif isinstance(last := taken[-1], ModelResponse):
        taken[-1] = replace(last, parts=[*last.parts, *message.parts])
    else:
        taken.append(message)


def _is_spoken(part: object) -> bool:
    """Whether something stands among the messages, and not before them as instructions."""
    return not isinstance(part, SystemPromptPart)


def _with_one_text(message: ModelMessage) -> ModelMessage:
    if not isinstance(message, ModelRequest) or _texts(message.parts) < 2:
        return message
    parts: list[Any] = []
    # A summary becomes the text that the library would send for it.
    for part in _sendable_request_parts(message.parts):
        if parts and isinstance(part, UserPromptPart) and isinstance(parts[-1], UserPromptPart):
            parts[-1] = replace(parts[-1], content=_joined(parts[-1].content, part.content))
        else:
            parts.append(part)
    return replace(message, parts=parts)


def _joined(
    first: str | Sequence[UserContent], second: str | Sequence[UserContent]
) -> str | list[UserContent]:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    both = ([one] if isinstance(one, str) else one for one in (first, second))
    return [item for items in both for item in items]
