"""Stored messages in AG-UI's format, and whether a client's copy is up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.api.ag_ui.request import HeldMessage
from clew.core.client_message import make_result_id
from clew.core.entry import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from clew.core.client_message import ClientMessage


def build_messages(stored: Iterable[ClientMessage]) -> list[dict[str, Any]]:
    """Return stored messages as a client keeps them."""
    return [one for message in stored for one in _iter_parts(message)]


def is_current(held: Sequence[HeldMessage], stored: Iterable[ClientMessage]) -> bool:
    """Return whether a client holds exactly the stored messages."""
    parts = build_messages(stored)
    return list(held) == [
        HeldMessage(
            id=one["id"],
            role=one["role"],
            text=one.get("content", "") if one["role"] == "assistant" else "",
        )
        for one in parts
    ]


def _iter_parts(message: ClientMessage) -> Iterator[dict[str, Any]]:
    match message.role:
        case Role.USER:
            yield {"id": message.id, "role": "user", "content": message.text}
        case Role.ASSISTANT if message.text.strip() or message.calls:
            yield _build_response(message)
        case Role.ASSISTANT:
            pass
        case Role.TOOL:
            for call, text in message.results:
                yield {
                    "id": make_result_id(call),
                    "role": "tool",
                    "toolCallId": call,
                    "content": text,
                }


def _build_response(message: ClientMessage) -> dict[str, Any]:
    text = {"content": message.text} if message.text.strip() else {}
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.tool, "arguments": call.args},
        }
        for call in message.calls
    ]
    return {
        "id": message.id,
        "role": "assistant",
        **text,
        **({"toolCalls": calls} if calls else {}),
    }
