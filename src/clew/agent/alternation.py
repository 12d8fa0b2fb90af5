"""
Role alternation: messages sent to a model alternate between user and assistant.

Many chat templates refuse anything else, with every later request of the conversation. The
store keeps the messages as they came; this module orders them, depending on nothing else.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import groupby, takewhile
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
    has_begun = False
    for message in messages:
        if isinstance(message, ModelResponse):
            _append_response(taken, message, has_begun=has_begun)
        else:
            _append_request(taken, message)
        has_begun = has_begun or _has_begun(message)
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


def _has_begun(message: ModelMessage) -> bool:
    if isinstance(message, ModelResponse):
        return _has_content(message)
    return any(map(_is_conversation_part, message.parts))


def _append_response(taken: list[ModelMessage], message: ModelResponse, *, has_begun: bool) -> None:
    if not _has_content(message):
        return
    if not has_begun:
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
    sendable = _sendable_request_parts(message.parts)
    for is_user, group in groupby(sendable, key=lambda part: isinstance(part, UserPromptPart)):
        found: list[Any] = list(group)
        if is_user and len(found) > 1:
            found = [replace(found[0], content=_join_content([part.content for part in found]))]
        parts += found
    return replace(message, parts=parts)


def _join_content(contents: Sequence[str | Sequence[UserContent]]) -> str | list[UserContent]:
    """Return contents as one: texts at the start as one text, other texts as they are."""
    leading = [*takewhile(lambda one: isinstance(one, str), contents)]
    text = "\n\n".join(one for one in leading if isinstance(one, str))
    if len(leading) == len(contents):
        return text
    rest = ([one] if isinstance(one, str) else one for one in contents[len(leading) :])
    return [*([text] if leading else []), *(item for items in rest for item in items)]
