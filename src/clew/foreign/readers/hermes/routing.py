"""Routes of chats at Hermes Agent, as its gateway keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from clew.core.payload import as_object, as_text
from clew.core.route import MAIN_AGENT, Route
from clew.foreign.folders import read_json
from clew.foreign.readers.hermes.sessions import parse_object
from clew.foreign.sqlite_files import list_columns

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from pathlib import Path

_DM: Final = "dm"
#: Platforms on which every chat that is not direct is a group here.
_GROUP_ONLY: Final = ("discord", "slack")
_KINDS: Final = {"forum": "group", "supergroup": "group", "thread": "group", "topic": "group"}


def read_table(connection: sqlite3.Connection) -> dict[str, dict[str, Any]]:
    """Return the entries of the database by their session key."""
    if "entry_json" not in list_columns(connection, "gateway_routing"):
        return {}
    rows = connection.execute("SELECT session_key, entry_json FROM gateway_routing")
    return {as_text(row["session_key"]): parse_object(row["entry_json"]) for row in rows}


def read_file(path: Path) -> dict[str, dict[str, Any]]:
    """Return the entries of ``sessions.json`` by their session key."""
    return {key: as_object(entry) for key, entry in as_object(read_json(path)).items()}


def group_routes(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Route]]:
    """Return the routes by the session that they lead to."""
    found: dict[str, list[Route]] = {}
    for key, entry in entries.items():
        route = make_route(key, as_object(entry.get("origin")))
        session = as_text(entry.get("session_id"))
        if route is not None and session:
            found.setdefault(session, []).append(route)
    return found


def make_route(key: str, origin: Mapping[str, Any]) -> Route | None:
    """Return the route of a session key, whose parts the origin tells exactly."""
    start, _, rest = key.partition(":")
    agent, _, rest = rest.partition(":")
    platform, _, rest = rest.partition(":")
    kind, _, rest = rest.partition(":")
    chat = as_text(origin.get("chat_id")) or rest.partition(":")[0]
    if start != "agent" or not (agent and platform and kind and chat) or platform == "local":
        return None
    thread = as_text(origin.get("thread_id"))
    if not origin and kind == _DM:
        thread = rest.partition(":")[2]
    parent = as_text(origin.get("parent_chat_id"))
    if platform == "discord" and parent and kind == "thread":
        chat, thread = parent, chat
    user = as_text(origin.get("user_id_alt") or origin.get("user_id"))
    is_apart = kind != _DM and bool(user) and rest.endswith(f":{user}")
    return Route(
        agent=agent or MAIN_AGENT,
        platform=platform,
        kind=_name_kind(platform, kind),
        chat=chat,
        thread=thread or None,
        user=user if is_apart else None,
    )


def _name_kind(platform: str, kind: str) -> str:
    if kind != _DM and platform in _GROUP_ONLY:
        return "group"
    return _KINDS.get(kind, kind)


def make_chat_route(origin: Mapping[str, Any]) -> Route | None:
    """Return the route of a chat that a job is told to."""
    platform, chat = as_text(origin.get("platform")), as_text(origin.get("chat_id"))
    if not platform or not chat or platform == "local":
        return None
    kind = as_text(origin.get("chat_type")) or _guess_kind(platform, chat)
    thread = as_text(origin.get("thread_id")) or None
    return Route(platform=platform, kind=_name_kind(platform, kind), chat=chat, thread=thread)


def _guess_kind(platform: str, chat: str) -> str:
    if platform == "telegram":
        return "group" if chat.startswith("-") else _DM
    if platform == "slack":
        return _DM if chat.startswith("D") else "group"
    return "group" if platform == "discord" else _DM
