"""
Role alternation: messages sent to a model alternate between user and assistant.

Many chat templates refuse anything else, with every later request of the conversation. The
store keeps the messages as they came; this module orders them, depending on nothing else.
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

from clew.agent.messages import is_placeholder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic_ai.messages import ModelMessage, UserContent
    from pydantic_ai.models import Model

__all__ = ["alternate_roles", "enforce_alternation"]

#: Prefix of the assistant's text where a conversation begins with it.
_ASSISTANT_FIRST_PREFIX = "The assistant began: "


def enforce_alternation(model: Model) -> None:
    """Make a model send only alternating messages, for every caller."""
    model.__class__ = _make_alternating_class(type(model))


@cache
def _make_alternating_class(cls: type[Model]) -> type[Model]:
    def prepare_messages(self: Any, messages: Any, *rest: Any, **named: Any) -> list[ModelMessage]:
        # Not `super()`: the class is created here.
        prepared = alternate_roles(cls.prepare_messages(self, messages, *rest, **named))
        return _drop_unsigned_thinking(prepared) if self.system == "anthropic" else prepared

    return type(cls.__name__, (cls,), {"prepare_messages": prepare_messages})


def _drop_unsigned_thinking(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """
    Drop thinking that no Anthropic provider has signed, which its format cannot carry.

    The library would send it as a user message, so that two of these follow each other.
    """
    return [
        replace(message, parts=[part for part in message.parts if not _is_unsigned_thinking(part)])
        if isinstance(message, ModelResponse) and any(map(_is_unsigned_thinking, message.parts))
        else message
        for message in messages
    ]


def _is_unsigned_thinking(part: object) -> bool:
    return isinstance(part, ThinkingPart) and not part.signature


def alternate_roles(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """
    Return the messages so that the user begins and roles alternate.

    Neighbours of one role are merged. Where the assistant begins, its text becomes a user
    message; a response without content is left out.
    """
    if _is_alternating(messages):
        return list(messages)
    taken: list[ModelMessage] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            _append_response(taken, message)
        else:
            _append_request(taken, message)
    return [_merge_user_texts(message) for message in taken]


def _is_alternating(messages: Sequence[ModelMessage]) -> bool:
    if messages and not any(_is_conversation_part(part) for part in messages[0].parts):
        return False
    request = True
    for message in messages:
        if isinstance(message, ModelRequest) is not request:
            return False
        if request and len(message.parts) > 1 and _count_texts(message.parts) > 1:
            return False
        if not request and not _has_content(message):
            return False
        request = not request
    return True


def _count_texts(parts: Iterable[object]) -> int:
    return sum(isinstance(part, (UserPromptPart, CompactionPart)) for part in parts)


def _has_content(message: ModelMessage) -> bool:
    return any(not isinstance(part, ThinkingPart) for part in message.parts)


def _append_request(taken: list[ModelMessage], message: ModelRequest) -> None:
    if taken and isinstance(before := taken[-1], ModelRequest):
        taken[-1] = replace(message, parts=[*before.parts, *message.parts])
    else:
        taken.append(message)


def _append_response(taken: list[ModelMessage], message: ModelResponse) -> None:
    if not _has_content(message):
        return
    if not any(_is_conversation_part(part) for request in taken for part in request.parts):
        text = "\n\n".join(p.content for p in message.parts if isinstance(p, TextPart))
        _append_request(taken, ModelRequest(parts=[UserPromptPart(_ASSISTANT_FIRST_PREFIX + text)]))
    elif is_placeholder(taken[-1]):
        # The real answer replaces the placeholder.
        taken[-1] = message
    elif isinstance(last := taken[-1], ModelResponse):
        taken[-1] = replace(last, parts=[*last.parts, *message.parts])
    else:
        taken.append(message)


def _is_conversation_part(part: object) -> bool:
    """Return whether a part belongs to the messages, not to the instructions before them."""
    return not isinstance(part, SystemPromptPart)


def _merge_user_texts(message: ModelMessage) -> ModelMessage:
    if not isinstance(message, ModelRequest) or _count_texts(message.parts) < 2:
        return message
    parts: list[Any] = []
    # A summary becomes the text that the library would send for it.
    for part in _sendable_request_parts(message.parts):
        if parts and isinstance(part, UserPromptPart) and isinstance(parts[-1], UserPromptPart):
            parts[-1] = replace(parts[-1], content=_join_content(parts[-1].content, part.content))
        else:
            parts.append(part)
    return replace(message, parts=parts)


def _join_content(
    first: str | Sequence[UserContent], second: str | Sequence[UserContent]
) -> str | list[UserContent]:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    both = ([one] if isinstance(one, str) else one for one in (first, second))
    return [item for items in both for item in items]
