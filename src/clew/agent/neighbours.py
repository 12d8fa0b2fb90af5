"""Neighbours of one side in a context: joined before the library joins them, one after another."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    UserPromptPart,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.messages import ModelMessage


def join_neighbours(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """
    Return the messages with plain neighbours of one side as one message; the last one stays.

    The library sends the same, but copies all that it has joined with each message, so that
    a client's history of many would stop the process for minutes.
    """
    joined: list[ModelMessage] = []
    for side, group in groupby(messages[:-1], key=_find_plain_side):
        found = list(group)
        if side is None or len(found) == 1:
            joined += found
        else:
            parts = [part for message in found for part in message.parts]
            # Of responses the library keeps the first one, and of requests nothing else.
            joined.append(replace(found[0], parts=parts))  # pyright: ignore[reportArgumentType]
    return [*joined, *messages[-1:]]


def _find_plain_side(message: ModelMessage) -> type[ModelMessage] | None:
    """Return the type of a message that consists of nothing but texts; otherwise ``None``."""
    if message.metadata:
        return None
    if isinstance(message, ModelRequest):
        plain = not message.instructions and _has_only(message, UserPromptPart, SystemPromptPart)
    else:
        plain = _is_nobodys(message) and _has_only(message, TextPart)
    return type(message) if plain else None


def _has_only(message: ModelMessage, *types: type) -> bool:
    return bool(message.parts) and all(isinstance(part, types) for part in message.parts)


def _is_nobodys(response: ModelResponse) -> bool:
    """Return whether no provider has sent a response."""
    sender = (response.provider_response_id, response.provider_name, response.model_name)
    return all(one is None for one in sender)
