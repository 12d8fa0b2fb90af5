"""Messages in the forms that most programs share: OpenAI's, ShareGPT's."""

from __future__ import annotations

import base64
import binascii
import json
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

from clew.core.entry import Role
from clew.core.payload import as_text
from clew.foreign.conversations import (
    ForeignCall,
    ForeignEvent,
    ForeignFile,
    ForeignMessage,
    ForeignResult,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.foreign.conversations import ForeignItem

_ROLES: Final = {
    "user": Role.USER,
    "human": Role.USER,
    "assistant": Role.ASSISTANT,
    "gpt": Role.ASSISTANT,
    "model": Role.ASSISTANT,
    "bot": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
    "observation": Role.TOOL,
    "function_call": Role.ASSISTANT,
    "tool_call": Role.ASSISTANT,
}
#: Speakers of ShareGPT whose whole text is a call, or a list of them.
_CALLERS: Final = ("function_call", "tool_call")
#: Above it, a time is in milliseconds; above the next in micro-, then in nanoseconds.
_LATEST_SECONDS: Final = 100_000_000_000


def read_moment(value: object, default: int) -> int:
    """Return a time in milliseconds, from seconds, milliseconds, or ISO 8601."""
    if isinstance(value, str):
        try:
            return read_moment(float(value), default)
        except ValueError:
            return _parse_iso(value, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return default
    while value > _LATEST_SECONDS * 1000:
        value /= 1000
    return int(value if value > _LATEST_SECONDS else value * 1000)


def _parse_iso(text: str, default: int) -> int:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return default
    # A time without a zone is read the same on every machine, so that ids stay the same.
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def read_messages(records: Sequence[Any], *, at: int) -> list[ForeignItem]:
    """Return each record as an item; one that cannot be read as an event. ``at``: if unknown."""
    items: list[ForeignItem] = []
    for number, record in enumerate(records, 1):
        item = read_message(record, name=str(number), at=items[-1].at if items else at)
        items.append(item)
    return items


def read_message(record: Any, *, name: str, at: int) -> ForeignItem:
    """Return one record as an item; ``name`` is its id and ``at`` its time if it has none."""
    if not isinstance(record, dict):
        return make_event(record, name=name, at=at, kind="damaged", text="An unreadable message")
    said = cast("dict[str, Any]", record)
    name = as_text(said.get("id")) or name
    at = read_moment(_first_of(said, "timestamp", "created_at", "create_time", "time"), at)
    speaker = as_text(said.get("role") or said.get("from")).lower()
    content = said.get("content", said.get("value"))
    role = _ROLES.get(speaker)
    if role is None:
        text = read_content(content)
        kind = "system" if speaker in ("system", "developer") else "unknown"
        return make_event(said, name=name, at=at, kind=kind, text=text or f"{speaker} message")
    if speaker in _CALLERS:
        calls = _read_called(content)
        return ForeignMessage(id=name, role=role, at=at, calls=calls)
    if role is Role.TOOL:
        results = (_read_result(said, content),)
        return ForeignMessage(id=name, role=role, at=at, results=results)
    return ForeignMessage(
        id=name,
        role=role,
        at=at,
        text=read_content(content),
        reasoning=as_text(said.get("reasoning_content") or said.get("reasoning")),
        calls=read_calls(said) if role is Role.ASSISTANT else (),
        files=read_files(content),
        model=as_text(said.get("model")),
    )


def make_event(record: object, *, name: str, at: int, kind: str, text: str) -> ForeignEvent:
    """Return a record that is no message as an event that keeps all of it."""
    return ForeignEvent(id=name, at=at, kind=kind, text=text, payload=json.dumps(record))


def read_content(content: object) -> str:
    """Return the text of a content: a text, or a list of parts."""
    if isinstance(content, list):
        parts = map(_read_part, cast("list[object]", content))
        return "\n".join(part for part in parts if part)
    if isinstance(content, dict):
        return _read_part(cast("dict[str, object]", content))
    return as_text(content)


def _read_part(part: object) -> str:
    if not isinstance(part, dict):
        return as_text(part)
    said = cast("dict[str, object]", part)
    return as_text(_first_of(said, "text", "content", "value"))


def read_calls(said: dict[str, Any]) -> tuple[ForeignCall, ...]:
    """Return the calls of an assistant's message, in OpenAI's forms."""
    found = said.get("tool_calls")
    calls = [_read_call(one) for one in cast("list[Any]", found)] if isinstance(found, list) else []
    if isinstance(said.get("function_call"), dict):
        calls.append(_read_call({"function": said["function_call"]}))
    return tuple(calls)


def _read_called(content: object) -> tuple[ForeignCall, ...]:
    text = read_content(content)
    try:
        found = json.loads(text)
    except ValueError:
        found = {"name": "", "arguments": text}
    records = cast("list[Any]", found) if isinstance(found, list) else [found]
    return tuple(map(_read_call, records))


def _read_call(record: Any) -> ForeignCall:
    said: dict[str, Any] = cast("dict[str, Any]", record) if isinstance(record, dict) else {}
    function = said.get("function")
    told = cast("dict[str, Any]", function) if isinstance(function, dict) else said
    arguments = _first_of(told, "arguments", "input", "args")
    return ForeignCall(
        id=as_text(_first_of(said, "id", "call_id", "tool_call_id")),
        name=as_text(told.get("name")),
        arguments=arguments if isinstance(arguments, str) else json.dumps(arguments or {}),
    )


def _read_result(said: dict[str, Any], content: object) -> ForeignResult:
    text = read_content(content)
    return ForeignResult(
        call_id=as_text(_first_of(said, "tool_call_id", "call_id")),
        name=as_text(said.get("name")),
        text=text if text or content is None else json.dumps(content),
        is_error=said.get("is_error") is True,
    )


def read_files(content: object) -> tuple[ForeignFile, ...]:
    """Return the pictures and files of a content that hold their bytes in a data URL."""
    if not isinstance(content, list):
        return ()
    found: list[ForeignFile] = []
    for part in cast("list[object]", content):
        url = _find_url(part)
        if url:
            found.append(read_data_url(url, name=f"file-{len(found) + 1}"))
    return tuple(found)


def _find_url(part: object) -> str:
    if not isinstance(part, dict):
        return ""
    said = cast("dict[str, Any]", part)
    url = said.get("image_url") or said.get("file_url")
    return as_text(cast("dict[str, Any]", url).get("url") if isinstance(url, dict) else url)


def read_data_url(url: str, *, name: str) -> ForeignFile:
    """Return the file of a ``data:`` URL; of another one only its name."""
    head, _, data = url.partition(",")
    if not head.startswith("data:"):
        return ForeignFile(name=url.rpartition("/")[2] or url, media_type="", content=None)
    media_type = head.removeprefix("data:").split(";")[0]
    try:
        content = base64.b64decode(data) if head.endswith(";base64") else data.encode()
    except (ValueError, binascii.Error):
        content = None
    return ForeignFile(name=name, media_type=media_type, content=content)


def _first_of(said: dict[str, Any], *keys: str) -> Any:
    return next((said[key] for key in keys if said.get(key) is not None), None)
