"""Conversion of entries to blocks: one message may be a text, thinking and tool calls."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, cast

from clew.core.byte_size import format_size
from clew.core.entry import CAUSE_KEY
from clew.core.journal import CallStatus, status_from_result
from clew.core.rewound import is_rewound
from clew.core.sent_files import FILES_KEY
from clew.record import replace
from clew.tui.state.view import (
    Block,
    BlockKind,
    ToolCallResult,
    ToolCallView,
    ToolProgress,
    TurnTotals,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clew.wire.models import StateShape


class EntryLike(Protocol):
    """Common fields of a listed entry and of an entry event."""

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


def build_blocks(entry: EntryLike) -> list[Block]:
    """Return the blocks of an entry; tool results go to the blocks of their calls."""
    if entry.kind == "event":
        return [_make_block(entry, BlockKind.NOTE, entry.text)]
    if entry.kind == "attempt":
        return (
            [_make_block(entry, BlockKind.NOTE, f"no answer: {entry.text}")] if entry.text else []
        )
    if entry.role == "user" and _get_field(_get_field(entry.message, "metadata"), CAUSE_KEY):
        return [_make_block(entry, BlockKind.NOTE, entry.text)]
    if entry.role == "user":
        return [_make_block(entry, BlockKind.USER, entry.text)]
    if entry.role == "assistant":
        return list(_response_blocks(entry))
    return []


def extract_results(entry: EntryLike) -> list[ToolCallResult]:
    """Return the tool results in an entry."""
    if entry.kind != "message" or entry.role == "assistant":
        return []
    return [
        ToolCallResult(
            call=str(part.get("tool_call_id", "")),
            text=_to_text(part.get("content")),
            progress=_result_progress(part),
        )
        for part in _iter_parts(entry.message)
        if part.get("part_kind") in ("tool-return", "retry-prompt", "retry-feedback")
        and part.get("tool_call_id")
    ]


def append_entry(blocks: tuple[Block, ...], entry: EntryLike) -> tuple[Block, ...]:
    """
    Return the blocks with those of one more entry.

    A final response also gets the totals of its turn, as far as it is loaded.
    """
    added = build_blocks(entry)
    is_final = entry.role == "assistant" and all(block.tool is None for block in added)
    if not added or entry.kind != "message" or not is_final or not entry.created_at:
        return (*blocks, *added)
    last = replace(added[-1], totals=_sum_totals(blocks, added[0], entry))
    return (*blocks, *added[:-1], last)


def _sum_totals(blocks: tuple[Block, ...], final: Block, entry: EntryLike) -> TurnTotals:
    tokens, first = final.tokens, final
    for block in reversed(blocks):
        if block.turn not in (final.turn, ""):
            break
        if block.turn:
            tokens, first = tokens + block.tokens, block
    seconds = _elapsed_seconds(first.at, final.at) if first.kind is BlockKind.USER else None
    return TurnTotals(
        model=str(_get_field(entry.message, "model_name") or ""), tokens=tokens, seconds=seconds
    )


def _elapsed_seconds(begun: str, ended: str) -> float | None:
    try:
        took = datetime.fromisoformat(ended) - datetime.fromisoformat(begun)
    except ValueError:
        return None
    return max(0.0, took.total_seconds())


def _result_progress(part: Mapping[str, Any]) -> ToolProgress:
    """Return how a call ended; an error result is recognised by its prefix."""
    failed = part.get("part_kind") == "retry-prompt" or part.get("outcome") == "failed"
    status = status_from_result(_to_text(part.get("content")))
    return progress_from_status(CallStatus.ERROR.value if failed else status.value)


def _response_blocks(entry: EntryLike) -> Iterator[Block]:
    for number, block in enumerate(_iter_response_blocks(entry)):
        yield replace(block, tokens=_output_tokens(entry.message)) if number == 0 else block


def _output_tokens(message: object) -> int:
    count = _get_field(_get_field(message, "usage"), "output_tokens")
    return count if isinstance(count, int) else 0


def _get_field(value: object, name: str) -> object:
    return cast("dict[str, object]", value).get(name) if isinstance(value, dict) else None


def _iter_response_blocks(entry: EntryLike) -> Iterator[Block]:
    parts = list(_iter_parts(entry.message))
    if not parts and entry.text:
        yield _make_block(entry, BlockKind.ANSWER, entry.text)
    for number, part in enumerate(parts):
        content = part.get("content")
        match part.get("part_kind"):
            # An entry without text is a placeholder for a missing answer.
            case "text" if content and entry.text:
                yield _make_block(entry, BlockKind.ANSWER, str(content), number)
            case "thinking" if content:
                yield _make_block(entry, BlockKind.THINKING, str(content), number)
            case "tool-call" | "builtin-tool-call":
                call = str(part.get("tool_call_id", ""))
                tool = ToolCallView(
                    call=call, name=str(part.get("tool_name", "")), args=_to_text(part.get("args"))
                )
                yield replace(_make_block(entry, BlockKind.TOOL, "", number), tool=tool)
            case _:
                pass
    for number, file in enumerate(_iter_files(entry.message), len(parts)):
        yield _make_block(entry, BlockKind.ANSWER, _describe_file(file, entry.session), number)


def _iter_files(message: object) -> Iterator[Mapping[str, Any]]:
    """Yield the files that are sent with an answer."""
    found = _get_field(_get_field(message, "metadata"), FILES_KEY)
    for one in cast("list[object]", found) if isinstance(found, list) else []:
        if isinstance(one, dict):
            yield cast("dict[str, Any]", one)


def _describe_file(file: Mapping[str, Any], session: str) -> str:
    """Return what is shown of a file, and how it is saved, as Markdown."""
    name = str(file.get("name")).replace("`", "'")
    said = f"{file['caption']}\n\n" if file.get("caption") else ""
    size = format_size(int(file.get("size") or 0))
    return (
        f"{said}File `{name}` ({size}); to save it: "
        f"`clew sessions file {session} {file.get('attachment')}`"
    )


def _make_block(entry: EntryLike, kind: BlockKind, text: str, number: int = 0) -> Block:
    return Block(
        key=f"{entry.seq}.{number}",
        kind=kind,
        seq=entry.seq,
        text=text,
        session=entry.session,
        turn=entry.turn or "",
        at=entry.created_at,
    )


def _iter_parts(message: object) -> Iterator[Mapping[str, Any]]:
    parts = _get_field(message, "parts")
    for part in cast("list[object]", parts) if isinstance(parts, list) else ():
        if isinstance(part, dict):
            yield cast("dict[str, Any]", part)


def _to_text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def mark_rewound(blocks: Sequence[Block], state: StateShape | None) -> tuple[Block, ...]:
    """Return the blocks, with rewound ones marked; those of an original keep their mark."""
    spans = state.taken_back if state else []
    return tuple(
        block if block.taken == taken else replace(block, taken=taken)
        for block in blocks
        for taken in (is_rewound(block.seq, spans) or (block.taken and block.seq < 1),)
    )


def progress_from_status(status: str | None) -> ToolProgress:
    """Return the progress of a call by an event's status."""
    if status is None:
        return ToolProgress.RUNNING
    known = {CallStatus.OK.value: ToolProgress.DONE, CallStatus.DENIED.value: ToolProgress.DENIED}
    return known.get(status, ToolProgress.FAILED)
