"""Sessions of Hermes Agent, and the chains that compactions make of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from clew.core.payload import as_object, as_text
from clew.foreign.chat_messages import read_moment
from clew.foreign.sqlite_files import list_columns
from clew.record import Record

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence

_COLUMNS: Final = (
    "id",
    "source",
    "user_id",
    "model",
    "model_config",
    "billing_provider",
    "parent_session_id",
    "started_at",
    "ended_at",
    "end_reason",
    "title",
    "display_name",
    "origin_json",
    "chat_type",
)
_COMPRESSION: Final = "compression"


class HermesSession(Record):
    """A session as it is stored, without its messages."""

    id: str
    source: str = ""
    user: str = ""
    user_name: str = ""
    chat_type: str = ""
    model: str = ""
    parent: str = ""
    branch_of: str = ""
    is_delegated: bool = False
    started_at: int = 0
    is_ended: bool = False
    end_reason: str = ""
    title: str = ""
    #: Time of its last message.
    last_at: int = 0


def read_sessions(connection: sqlite3.Connection) -> list[HermesSession]:
    """Return all sessions, those included of which only messages are left."""
    known = list_columns(connection, "sessions")
    wanted = [name for name in _COLUMNS if name in known]
    last = _read_last_times(connection)
    rows = connection.execute(f"SELECT {', '.join(wanted)} FROM sessions") if wanted else ()
    found = [_make_session(dict(row), last) for row in rows]
    lost = last.keys() - {one.id for one in found}
    found += [HermesSession(id=name, started_at=last[name], last_at=last[name]) for name in lost]
    return found


def _read_last_times(connection: sqlite3.Connection) -> dict[str, int]:
    if "session_id" not in list_columns(connection, "messages"):
        return {}
    query = "SELECT session_id, MAX(timestamp) AS last FROM messages GROUP BY session_id"
    rows = connection.execute(query)
    return {as_text(row["session_id"]): read_moment(row["last"], 0) for row in rows}


def _make_session(row: Mapping[str, Any], last: Mapping[str, int]) -> HermesSession:
    name = as_text(row.get("id"))
    settings = parse_object(row.get("model_config"))
    origin = parse_object(row.get("origin_json"))
    started = read_moment(row.get("started_at"), 0)
    model, provider = as_text(row.get("model")), as_text(row.get("billing_provider"))
    return HermesSession(
        id=name,
        source=as_text(row.get("source")),
        user=as_text(row.get("user_id")),
        user_name=as_text(origin.get("user_name")),
        chat_type=as_text(row.get("chat_type")) or as_text(origin.get("chat_type")),
        model=f"{provider}:{model}" if provider and model else model,
        parent=as_text(row.get("parent_session_id")),
        branch_of=as_text(settings.get("_branched_from")),
        is_delegated=settings.get("_delegate_from") is not None or row.get("source") == "tool",
        started_at=started,
        is_ended=row.get("ended_at") is not None,
        end_reason=as_text(row.get("end_reason")),
        title=as_text(row.get("title")),
        last_at=last.get(name, 0) or started,
    )


def parse_object(text: object) -> dict[str, Any]:
    """Return the object of a JSON text; empty if it is none."""
    try:
        return as_object(json.loads(text)) if isinstance(text, str | bytes) else {}
    except (ValueError, RecursionError):
        return {}


def chain_sessions(sessions: Iterable[HermesSession]) -> list[list[HermesSession]]:
    """Return the sessions of each conversation in order, the oldest conversation first."""
    known = {one.id: one for one in sessions}
    children: dict[str, list[HermesSession]] = {}
    for one in known.values():
        if one.parent in known and not one.branch_of and not one.is_delegated:
            children.setdefault(one.parent, []).append(one)
    after = {
        name: max(several, key=_rank_continuation)
        for name, several in children.items()
        if known[name].end_reason == _COMPRESSION
    }
    continued = {one.id for one in after.values()}
    roots = sorted((one for one in known.values() if one.id not in continued), key=_sort_key)
    seen: set[str] = set()
    chains = [_follow(root, after, seen) for root in roots]
    # What is left points to itself in a circle, which only damage makes.
    chains += [[one] for one in sorted(known.values(), key=_sort_key) if one.id not in seen]
    return chains


def _rank_continuation(one: HermesSession) -> tuple[int, int, int, str]:
    """Return the rank among the children of a compacted session: some are left-overs of races."""
    live = 2 if one.end_reason == _COMPRESSION else 0 if one.is_ended else 1
    return live, one.last_at, one.started_at, one.id


def _sort_key(one: HermesSession) -> tuple[int, str]:
    return one.started_at, one.id


def _follow(
    root: HermesSession, after: Mapping[str, HermesSession], seen: set[str]
) -> list[HermesSession]:
    chain: list[HermesSession] = []
    one = root
    while one.id not in seen:
        seen.add(one.id)
        chain.append(one)
        one = after.get(one.id, one)
    return chain


def find_origin(
    chain: Sequence[HermesSession],
    roots: Mapping[str, str],
    sessions: Mapping[str, HermesSession],
) -> str | None:
    """Return the id of the conversation that one was branched from."""
    first = chain[0]
    origin = first.branch_of
    parent = sessions.get(first.parent)
    if not origin and parent is not None and parent.end_reason == "branched":
        origin = first.parent
    found = roots.get(origin)
    return found if found != first.id else None
