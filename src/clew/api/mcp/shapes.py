"""What models read of results: without what only programs need, and with long texts cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Characters of an entry in a list; a resource has all of them.
MAX_TEXT: Final = 4_000
URI_PREFIX: Final = "clew://conversations/"
_ENTRIES: Final = "/entries/"


def conversation_uri(conversation: str) -> str:
    return f"{URI_PREFIX}{quote(conversation, safe='')}"


def entry_uri(conversation: str, seq: int | str) -> str:
    return f"{conversation_uri(conversation)}{_ENTRIES}{seq}"


def parse_uri(uri: str) -> tuple[str, int | None] | None:
    """Return the conversation that a URI names, and the seq of an entry; ``None`` for others."""
    if not uri.startswith(URI_PREFIX):
        return None
    name, slash, seq = uri.removeprefix(URI_PREFIX).partition(_ENTRIES)
    if not name or "/" in name or (slash and not (seq.isascii() and seq.isdigit())):
        return None
    return unquote(name), int(seq[:16]) if slash else None


def shape_conversation(found: Mapping[str, Any]) -> dict[str, Any]:
    names = ("id", "title", "scope", "routes", "entries", "created_at", "updated_at")
    return {name: found[name] for name in names}


def shape_conversations(page: Mapping[str, Any]) -> dict[str, Any]:
    return {"items": [shape_conversation(one) for one in page["items"]], "next": page["next"]}


def shape_entry(entry: Mapping[str, Any], *, longest: int | None = MAX_TEXT) -> dict[str, Any]:
    names = ("seq", "kind", "role", "text", "turn", "created_at")
    shown = {name: entry[name] for name in names if entry[name] is not None}
    if longest is not None and len(text := entry["text"]) > longest:
        shown |= {"text": f"{text[:longest]}…", "characters": len(text)}
    return shown


def shape_entries(page: Mapping[str, Any]) -> dict[str, Any]:
    return {"items": [shape_entry(one) for one in page["items"]], "next": page["next"]}
