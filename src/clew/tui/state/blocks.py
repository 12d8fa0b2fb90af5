"""Entries as blocks: one message may be a text, thoughts and tool calls."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, cast

from clew.core.journal import CallStatus, status_from_result
from clew.tui.state.view import Block, Kind, Progress, Result, Tool, Totals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clew.wire.records import StateShape


class Entry(Protocol):
    """What an entry of a list and an event of an entry have in common."""

    @property
    def seq(self) -> int: ...
    @property
    def session(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def role(self) -> str | None: ...
    @property
    def text(self) -> str: ...
    @property
    def message(self) -> Any: ...
    @property
    def turn(self) -> str | None: ...
    @property
    def created_at(self) -> str: ...


def blocks_of(entry: Entry) -> list[Block]:
    """What is shown of an entry; results of tools belong to the blocks of their calls."""
    if entry.kind == "event":
        return [_block(entry, Kind.NOTE, entry.text)]
    if entry.kind == "attempt":
        return [_block(entry, Kind.NOTE, f"no answer: {entry.text}")] if entry.text else []
    if entry.role == "user":
        return [_block(entry, Kind.USER, entry.text)]
    if entry.role == "assistant":
        return list(_of_response(entry))
    return []


def results_of(entry: Entry) -> list[Result]:
    """What tools gave back in an entry."""
    if entry.kind != "message" or entry.role == "assistant":
        return []
    return [
        Result(
            call=str(part.get("tool_call_id", "")),
            text=_text(part.get("content")),
            progress=_progress(part),
        )
        for part in _parts(entry.message)
        if part.get("part_kind") in ("tool-return", "retry-prompt", "retry-feedback")
        and part.get("tool_call_id")
    ]


def with_blocks(blocks: tuple[Block, ...], entry: Entry) -> tuple[Block, ...]:
    """
    The blocks with those of one more entry.

    A final response gets what its whole turn took, as far as that is loaded.
    """
    added = blocks_of(entry)
    is_final = entry.role == "assistant" and all(block.tool is None for block in added)
    if not added or entry.kind != "message" or not is_final or not entry.created_at:
        return (*blocks, *added)
    last = replace(added[-1], totals=_totals(blocks, added[0], entry))
    return (*blocks, *added[:-1], last)


def _totals(blocks: tuple[Block, ...], final: Block, entry: Entry) -> Totals:
    tokens, first = final.tokens, final
    for block in reversed(blocks):
        if block.turn not in (final.turn, ""):
            break
        if block.turn:
            tokens, first = tokens + block.tokens, block
    seconds = _seconds(first.at, final.at) if first.kind is Kind.USER else None
    return Totals(
        model=str(_field(entry.message, "model_name") or ""), tokens=tokens, seconds=seconds
    )


def _seconds(begun: str, ended: str) -> float | None:
    try:
        took = datetime.fromisoformat(ended) - datetime.fromisoformat(begun)
    except ValueError:
        return None
    return max(0.0, took.total_seconds())


def _progress(part: Mapping[str, Any]) -> Progress:
    """How a call ended: its result is a sentence that says so where the tool has none."""
    failed = part.get("part_kind") == "retry-prompt" or part.get("outcome") == "failed"
    status = status_from_result(_text(part.get("content")))
    return progress_of(CallStatus.ERROR.value if failed else status.value)


def _of_response(entry: Entry) -> Iterator[Block]:
    for number, block in enumerate(_response_parts(entry)):
        yield replace(block, tokens=_tokens(entry.message)) if number == 0 else block


def _tokens(message: object) -> int:
    count = _field(_field(message, "usage"), "output_tokens")
    return count if isinstance(count, int) else 0


def _field(value: object, name: str) -> object:
    return cast("dict[str, object]", value).get(name) if isinstance(value, dict) else None


def _response_parts(entry: Entry) -> Iterator[Block]:
    parts = list(_parts(entry.message))
    if not parts and entry.text:
        yield _block(entry, Kind.ANSWER, entry.text)
    for number, part in enumerate(parts):
        content = part.get("content")
        match part.get("part_kind"):
            # Without a text of its own the entry only stands for an answer that did not come.
            case "text" if content and entry.text:
                yield _block(entry, Kind.ANSWER, str(content), number)
            case "thinking" if content:
                yield _block(entry, Kind.THINKING, str(content), number)
            case "tool-call" | "builtin-tool-call":
                call = str(part.get("tool_call_id", ""))
                tool = Tool(
                    call=call, name=str(part.get("tool_name", "")), args=_text(part.get("args"))
                )
                yield replace(_block(entry, Kind.TOOL, "", number), tool=tool)
            case _:
                pass


def _block(entry: Entry, kind: Kind, text: str, number: int = 0) -> Block:
    return Block(
        key=f"{entry.seq}.{number}",
        kind=kind,
        seq=entry.seq,
        text=text,
        session=entry.session,
        turn=entry.turn or "",
        at=entry.created_at,
    )


def _parts(message: object) -> Iterator[Mapping[str, Any]]:
    parts = _field(message, "parts")
    for part in cast("list[object]", parts) if isinstance(parts, list) else ():
        if isinstance(part, dict):
            yield cast("dict[str, Any]", part)


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def marked(blocks: Sequence[Block], state: StateShape | None) -> tuple[Block, ...]:
    """The blocks, those marked that somebody went back over."""
    spans = state.taken_back if state else []
    return tuple(
        block if block.taken == taken else replace(block, taken=taken)
        for block in blocks
        for taken in (any(span.first <= block.seq <= span.last for span in spans),)
    )


def progress_of(status: str | None) -> Progress:
    """How far a call is, by an event's status."""
    if status is None:
        return Progress.RUNNING
    known = {CallStatus.OK.value: Progress.DONE, CallStatus.DENIED.value: Progress.DENIED}
    return known.get(status, Progress.FAILED)
