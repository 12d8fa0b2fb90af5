"""Records of OpenClaw's transcripts as items (both stores hold the same records)."""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any

from clew.core.entry import Role
from clew.core.payload import as_list, as_object, as_text
from clew.foreign.chat_messages import read_content, read_moment
from clew.foreign.conversations import (
    ForeignCall,
    ForeignCompaction,
    ForeignFile,
    ForeignMessage,
    ForeignResult,
    ForeignUsage,
)
from clew.foreign.folders import get_nested

if TYPE_CHECKING:
    from clew.foreign.item_list import ItemList


def add_record(items: ItemList, name: str, data: dict[str, Any]) -> None:
    """Add one record; what is no message or compaction becomes an event."""
    items.at = read_moment(data.get("timestamp"), items.at)
    name, kind = as_text(data.get("id")) or name, as_text(data.get("type"))
    said = as_object(data.get("message"))
    if kind == "compaction":
        kept = as_text(data.get("firstKeptEntryId")) or None
        items.add(
            ForeignCompaction(
                id=name, at=items.at, summary=as_text(data.get("summary")), kept_from=kept
            )
        )
    elif kind == "message" and said.get("role") in ("user", "assistant", "toolResult"):
        items.add(_read_message(name, items.at, said))
    elif kind == "reset":
        items.add(_read_reset(name, items.at, data))
    else:
        text = as_text(data.get("summary")) or read_content(data.get("content"))
        kind = kind or "unknown"
        items.add_event(name, kind, text or f"OpenClaw: {kind}", data)


def _read_reset(name: str, at: int, data: dict[str, Any]) -> ForeignCompaction:
    """Return the point from which the model is not sent what came before."""
    kept = as_text(data.get("firstKeptEntryId")) or None
    why = as_text(data.get("reason")) or "reset"
    summary = f"(The conversation was begun anew: {why}. There is no summary of what came before.)"
    return ForeignCompaction(id=name, at=at, summary=summary, kept_from=kept)


def _read_message(name: str, at: int, said: dict[str, Any]) -> ForeignMessage:
    content = said.get("content")
    parts = [as_object(part) for part in as_list(content)]
    if said["role"] == "toolResult":
        result = ForeignResult(
            call_id=as_text(said.get("toolCallId")),
            name=as_text(said.get("toolName")),
            text=read_content(content),
            is_error=said.get("isError") is True,
        )
        return ForeignMessage(id=name, role=Role.TOOL, at=at, results=[result])
    texts = [as_text(p.get("text")) for p in parts if p.get("type") == "text"]
    text = content if isinstance(content, str) else "\n".join(texts)
    files = [_read_file(p) for p in parts if p.get("type") == "image"]
    if said["role"] == "user":
        return ForeignMessage(id=name, role=Role.USER, at=at, text=text, files=files)
    model = ":".join(filter(None, map(as_text, (said.get("provider"), said.get("model")))))
    return ForeignMessage(
        id=name,
        role=Role.ASSISTANT,
        at=at,
        text=text,
        files=files,
        model=model,
        reasoning="\n".join(
            as_text(p.get("thinking")) for p in parts if p.get("type") == "thinking"
        ),
        calls=[
            ForeignCall(
                id=as_text(p.get("id")),
                name=as_text(p.get("name")),
                arguments=json.dumps(p.get("arguments", {})),
            )
            for p in parts
            if p.get("type") == "toolCall"
        ],
        usage=_read_usage(as_object(said.get("usage"))),
    )


def _read_file(part: dict[str, Any]) -> ForeignFile:
    try:
        content = base64.b64decode(as_text(part.get("data")), validate=True) or None
    except (binascii.Error, ValueError):
        content = None
    return ForeignFile(name="image", media_type=as_text(part.get("mimeType")), content=content)


def _read_usage(usage: dict[str, Any]) -> ForeignUsage | None:
    def count(key: str) -> int:
        return usage[key] if isinstance(usage.get(key), int) else 0

    cost = get_nested(usage, "cost.total")
    return (
        ForeignUsage(
            input_tokens=count("input") + count("cacheRead") + count("cacheWrite"),
            cached_tokens=count("cacheRead"),
            output_tokens=count("output"),
            cost_micros=round(cost * 1e6) if isinstance(cost, int | float) else None,
        )
        if usage
        else None
    )
