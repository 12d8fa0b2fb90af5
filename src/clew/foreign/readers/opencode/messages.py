"""Messages of OpenCode as items: a message holds its tools with their results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from clew.core.entry import Role
from clew.core.payload import as_list, as_object, as_text
from clew.foreign.chat_messages import make_event, read_data_url
from clew.foreign.conversations import (
    ForeignCall,
    ForeignCompaction,
    ForeignFile,
    ForeignMessage,
    ForeignResult,
    ForeignUsage,
)
from clew.foreign.folders import get_nested
from clew.record import replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.foreign.conversations import ForeignItem
    from clew.foreign.readers.opencode.records import OpenCodeMessage, OpenCodeSession, StoredPart

_ENDED: Final = ("completed", "error")
_ABORTED: Final = "MessageAbortedError"


def read_items(
    session: OpenCodeSession, messages: Sequence[OpenCodeMessage], *, is_growing: bool
) -> list[ForeignItem]:
    """Return the items of a session; a message that is being written is left for the next time."""
    items: list[ForeignItem] = []
    kept: dict[str, str] = {}
    prompt = ""
    last = len(messages) - 1
    for place, message in enumerate(messages):
        if is_growing and place == last and _is_unfinished(message):
            break
        tails = [as_text(part.data.get("tail_start_id")) for part in message.parts]
        kept[message.id] = next(filter(None, tails), "")
        before, prompt = prompt, _read_system(message.data) or prompt
        if prompt != before:
            name = f"{message.id}:system"
            items.append(make_event(prompt, name=name, at=message.at, kind="system", text=prompt))
        items += _read_message(session, message, kept)
    return items


def _read_system(data: dict[str, Any]) -> str:
    """Return the system prompt that some releases store with each message."""
    told = data.get("system")
    return "\n".join(map(as_text, as_list(told))) or as_text(told)


def _is_unfinished(message: OpenCodeMessage) -> bool:
    if message.data.get("role") == "user":
        return not message.parts
    return not (get_nested(message.data, "time.completed") or message.data.get("error"))


def _read_message(
    session: OpenCodeSession, message: OpenCodeMessage, kept: dict[str, str]
) -> Iterator[ForeignItem]:
    data, role = message.data, message.data.get("role")
    if session.revert and message.id >= session.revert:
        if message.id > session.revert or not session.revert_part:
            yield _keep(message, message.id, "reverted", "A message that was taken back")
            return
        message, taken = _split_parts(message, session.revert_part)
        yield _keep_parts(message, taken, f"{message.id}:reverted", "reverted")
    if role == "user":
        yield from _read_question(message)
    elif role == "assistant" and _is_summary(data):
        yield from _read_summary(message, kept.get(as_text(data.get("parentID"))) or None)
    elif role == "assistant":
        yield from _read_answer(message)
    else:
        kind = as_text(role) or ("unknown" if data else "damaged")
        text = as_text(data.get("text")) or f"OpenCode: {kind}"
        yield _keep(message, message.id, kind, text)


def _split_parts(
    message: OpenCodeMessage, end: str
) -> tuple[OpenCodeMessage, Sequence[StoredPart]]:
    stay = [part for part in message.parts if part.id < end]
    return replace(message, parts=stay), [part for part in message.parts if part.id >= end]


def _is_summary(data: dict[str, Any]) -> bool:
    return data.get("summary") is True and bool(data.get("finish")) and not data.get("error")


def _keep(message: OpenCodeMessage, name: str, kind: str, text: str) -> ForeignItem:
    """Return a message as an event that keeps all of it."""
    stored = {"message": message.data or message.raw, "parts": _dump(message.parts)}
    return make_event(stored, name=name, at=message.at, kind=kind, text=text)


def _keep_parts(
    message: OpenCodeMessage, parts: Sequence[StoredPart], name: str, kind: str
) -> ForeignItem:
    """Return parts that are no part of a message here as one event."""
    text = next((as_text(part.data.get("text")) for part in parts if part.data.get("text")), "")
    kinds = dict.fromkeys(as_text(part.data.get("type")) or "damaged" for part in parts)
    text = text or f"OpenCode: {', '.join(kinds)}"
    return make_event({"parts": _dump(parts)}, name=name, at=message.at, kind=kind, text=text)


def _dump(parts: Sequence[StoredPart]) -> list[dict[str, Any]]:
    return [{"id": part.id, "data": part.data or part.raw} for part in parts]


def _read_summary(message: OpenCodeMessage, kept: str | None) -> Iterator[ForeignItem]:
    """Yield the compaction, and before it all that is stored of its message."""
    summary = _join(message.parts, "text")
    yield _keep(message, f"{message.id}:stored", "compaction", "OpenCode: compaction")
    yield ForeignCompaction(
        id=message.id,
        at=message.at,
        summary=summary or "(the summary is empty)",
        kept_from=kept,
    )


def _join(parts: Sequence[StoredPart], kind: str) -> str:
    texts = [as_text(part.data.get("text")) for part in parts if part.data.get("type") == kind]
    return "\n\n".join(filter(None, texts))


def _read_question(message: OpenCodeMessage) -> Iterator[ForeignItem]:
    said = [part for part in message.parts if _is_said(part)]
    files = [part for part in message.parts if part.data.get("type") == "file"]
    rest = [part for part in message.parts if part not in said and part not in files]
    if said or files:
        yield ForeignMessage(
            id=message.id,
            role=Role.USER,
            at=message.at,
            text=_join(said, "text"),
            files=[_read_file(part.data) for part in files],
        )
    kind = "system" if any(part.data.get("synthetic") for part in rest) else "parts"
    if said or files:
        if rest:
            yield _keep_parts(message, rest, f"{message.id}:more", kind)
    else:
        yield _keep_parts(message, rest, message.id, kind if rest else "empty")


def _is_said(part: StoredPart) -> bool:
    """Return whether a part is what the person wrote."""
    data = part.data
    return data.get("type") == "text" and not (data.get("synthetic") or data.get("ignored"))


def _read_file(data: dict[str, Any]) -> ForeignFile:
    name, url = as_text(data.get("filename")), as_text(data.get("url"))
    media_type = as_text(data.get("mime"))
    if not url.startswith("data:"):
        # A path on the machine of that time: what is there now may be something else.
        name = name or url.rpartition("/")[2]
        return ForeignFile(name=name, media_type=media_type, content=None)
    found = read_data_url(url, name=name or "file")
    return replace(found, media_type=media_type or found.media_type)


def _read_answer(message: OpenCodeMessage) -> Iterator[ForeignItem]:
    said = list(_split_steps(message))
    used = _read_usage(message.data)
    for place, step in enumerate(said):
        name = f"{message.id}/{place}" if place else message.id
        usage = used if place == len(said) - 1 else None
        yield _make_answer(message, step, name, usage)
        if results := [found for part in step if (found := _read_result(part)) is not None]:
            yield ForeignMessage(
                id=f"{name}:results", role=Role.TOOL, at=message.at, results=results
            )
    rest = [part for part in message.parts if not any(part in step for step in said)]
    rest += [part for step in said for part in step if get_nested(part.data, "state.attachments")]
    if rest or not said:
        name = f"{message.id}:more" if said else message.id
        yield _keep_parts(message, rest, name, "parts" if rest else "empty")
    if error := as_object(message.data.get("error")):
        kind = "aborted" if error.get("name") == _ABORTED else "error"
        text = as_text(get_nested(error, "data.message")) or as_text(error.get("name")) or kind
        yield make_event(error, name=f"{message.id}:error", at=message.at, kind=kind, text=text)


def _split_steps(message: OpenCodeMessage) -> Iterator[Sequence[StoredPart]]:
    """Yield the parts of each request to the model; older releases have several in a message."""
    step: list[StoredPart] = []
    has_marks = any(part.data.get("type") == "step-start" for part in message.parts)
    for part in message.parts:
        kind = part.data.get("type")
        is_called = any(one.data.get("type") == "tool" for one in step)
        if step and (kind == "step-start" if has_marks else is_called and kind != "tool"):
            yield step
            step = []
        if kind == "tool" or (kind in ("text", "reasoning") and part.data.get("text")):
            step.append(part)
    if step:
        yield step


def _make_answer(
    message: OpenCodeMessage, step: Sequence[StoredPart], name: str, usage: ForeignUsage | None
) -> ForeignMessage:
    data = message.data
    model = filter(None, (as_text(data.get("providerID")), as_text(data.get("modelID"))))
    return ForeignMessage(
        id=name,
        role=Role.ASSISTANT,
        at=message.at,
        text=_join(step, "text"),
        reasoning=_join(step, "reasoning"),
        calls=[_read_call(part) for part in step if part.data.get("type") == "tool"],
        model=":".join(model),
        usage=usage,
    )


def _read_call(part: StoredPart) -> ForeignCall:
    state = as_object(part.data.get("state"))
    given = state.get("input") or as_text(state.get("raw"))
    return ForeignCall(
        id=as_text(part.data.get("callID")) or part.id,
        name=as_text(part.data.get("tool")),
        arguments=_encode(given or {}),
    )


def _read_result(part: StoredPart) -> ForeignResult | None:
    state = as_object(part.data.get("state"))
    if part.data.get("type") != "tool" or state.get("status") not in _ENDED:
        return None
    failed = state["status"] == "error"
    return ForeignResult(
        call_id=as_text(part.data.get("callID")) or part.id,
        name=as_text(part.data.get("tool")),
        text=_encode(state.get("error" if failed else "output")),
        is_error=failed,
    )


def _encode(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _read_usage(data: dict[str, Any]) -> ForeignUsage | None:
    def count(dotted: str) -> int:
        value = get_nested(data, f"tokens.{dotted}")
        return int(value) if isinstance(value, int | float) else 0

    cost = data.get("cost")
    read, written = count("cache.read"), count("cache.write")
    used = ForeignUsage(
        input_tokens=count("input") + read + written,
        cached_tokens=read,
        output_tokens=count("output") + count("reasoning"),
        cost_micros=round(cost * 1e6) if isinstance(cost, int | float) and cost else None,
    )
    return used if used.input_tokens or used.output_tokens else None
