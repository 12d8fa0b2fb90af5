"""Resources: conversations, and their entries by seq."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.api.mcp import shapes
from clew.api.mcp.tools import PAGE_SIZE
from clew.record import Record
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.params import LARGEST_SEQ

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.api.mcp.operation_client import OperationClient


class ResourcePage(Record):
    """A page of resources, the last used first."""

    items: Sequence[dict[str, Any]]
    next: str | None


async def list_resources(client: OperationClient, cursor: str | None) -> ResourcePage:
    """
    Return a page of conversations as resources.

    :raises CallFailed: if the cursor is none of ours
    """
    page = await client.call("conversation.list", {"cursor": cursor, "limit": PAGE_SIZE})
    items = [
        {
            "uri": shapes.conversation_uri(one["id"]),
            "name": one["title"] or one["id"],
            "description": f"{one['entries']} entries, last used {one['updated_at']}",
        }
        for one in page["items"]
    ]
    return ResourcePage(items=items, next=page["next"])


async def read_resource(client: OperationClient, uri: str) -> dict[str, Any]:
    """
    Return a conversation with its newest entries, or one entry.

    :raises CallFailed: if there is no such resource
    """
    if (named := shapes.parse_uri(uri)) is None:
        raise _make_error(uri)
    conversation, seq = named
    if seq is None:
        return await _read_conversation(client, conversation)
    given = {"conversation": conversation, "after": max(0, seq - 1), "limit": 1}
    page = await client.call("conversation.entries", given)
    if not page["items"] or page["items"][0]["seq"] != seq:
        raise _make_error(uri)
    return shapes.shape_entry(page["items"][0], longest=None)


async def _read_conversation(client: OperationClient, conversation: str) -> dict[str, Any]:
    status = await client.call("conversation.status", {"conversation": conversation})
    given = {"conversation": conversation, "before": LARGEST_SEQ, "limit": PAGE_SIZE}
    page = await client.call("conversation.entries", given)
    entries = [
        {
            "uri": shapes.entry_uri(status["conversation"]["id"], one["seq"]),
            **shapes.shape_entry(one),
        }
        for one in page["items"]
    ]
    return {**shapes.shape_conversation(status["conversation"]), "newest": entries}


def _make_error(uri: str) -> CallFailed:
    return CallFailed.from_code(ErrorCode.NOT_FOUND, f"there is no resource {uri[:300]!r}")
