"""Sessions of Claude Code: the lines of one file as conversations."""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any, Final

from clew.core.entry import Role
from clew.core.payload import as_list, as_object, as_text
from clew.foreign.chat_messages import read_content, read_moment
from clew.foreign.conversations import (
    ForeignCall,
    ForeignCompaction,
    ForeignConversation,
    ForeignFile,
    ForeignMessage,
    ForeignResult,
    ForeignUsage,
)
from clew.foreign.folders import get_nested
from clew.foreign.item_list import ItemList
from clew.foreign.jsonl import is_growing, iter_lines, read_mtime
from clew.foreign.trees import TreeNode, split_paths

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from clew.foreign.jsonl import JsonLine

_USER, _ASSISTANT = "user", "assistant"
_TITLES: Final = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}


def read_sessions(
    path: Path, *, parent: str | None = None, is_sub: bool = False
) -> Iterator[ForeignConversation]:
    """Yield the conversations of a file: the main path, then its branches."""
    lines = list(iter_lines(path))
    if not lines:
        return
    paths = split_paths(
        [_read_node(line.data, is_sub=is_sub) for line in lines],
        lambda main, new: _is_fork(lines, main, new),
    )
    title, source = _find_title(lines), _find_source(lines)
    for found in paths:
        reader = _PathReader([lines[place] for place in found.places], read_mtime(path))
        times = [item.at for item in reader.items]
        yield ForeignConversation(
            id=f"{path.stem}#{found.origin}" if found.origin else path.stem,
            items=reader.items,
            created_at=min(times, default=read_mtime(path)),
            title=title,
            branch_of=path.stem if found.origin else parent or source,
            is_growing=not found.origin and is_growing(path),
        )


def _read_node(data: dict[str, Any], *, is_sub: bool) -> TreeNode:
    parent = data.get("parentUuid") or data.get("logicalParentUuid")
    return TreeNode(
        id=as_text(data.get("uuid")),
        parent=as_text(parent) or None,
        is_aside=bool(data.get("isSidechain")) and not is_sub,
    )


def _is_fork(lines: Sequence[JsonLine], main: set[int], new: Sequence[int]) -> bool:
    """Return whether there is a prompt, or an answer that is not on the main path."""
    answers = {get_nested(lines[place].data, "message.id") for place in main}
    return any(
        _is_prompt(data)
        or (
            data.get("type") == _ASSISTANT
            and (
                get_nested(data, "message.id") is None
                or get_nested(data, "message.id") not in answers
            )
        )
        for data in (lines[place].data for place in new)
    )


def _is_prompt(data: dict[str, Any]) -> bool:
    content = get_nested(data, "message.content")
    return data.get("type") == _USER and not any(
        as_object(block).get("type") == "tool_result" for block in as_list(content)
    )


def _find_title(lines: Sequence[JsonLine]) -> str:
    """Return the title: a person's, else the model's."""
    titles = {
        kind: as_text(line.data.get(key))
        for line in lines
        for kind, key in _TITLES.items()
        if line.data.get("type") == kind
    }
    return next((titles[kind] for kind in _TITLES if titles.get(kind)), "")


def _find_source(lines: Sequence[JsonLine]) -> str | None:
    """Return the session that this one was forked from."""
    sources = (get_nested(line.data, "forkedFrom.sessionId") for line in lines)
    return next((as_text(source) for source in sources if source), None)


class _PathReader:
    def __init__(self, lines: Sequence[JsonLine], at: int) -> None:
        self._list = ItemList(at)
        self._names: dict[str, str] = {}
        times = (line.data.get("timestamp") for line in lines)
        self._list.at = next((read_moment(time, at) for time in times if time), at)
        #: The boundary of a compaction whose summary is the next line.
        self._boundary: dict[str, Any] = {}
        for line in lines:
            self._read_line(line)
        self._end_compaction("")
        self.items = self._list.items

    def _read_line(self, line: JsonLine) -> None:
        if line.is_damaged:
            self._list.add_damaged(line)
            return
        data = line.data
        self._list.at = read_moment(data.get("timestamp"), self._list.at)
        name = as_text(data.get("uuid")) or f"line-{line.number}"
        message = as_object(data.get("message"))
        kind = as_text(data.get("type"))
        if data.get("isCompactSummary"):
            self._boundary = self._boundary or {"uuid": name}
            self._end_compaction(read_content(message.get("content")))
        elif data.get("subtype") == "compact_boundary":
            self._end_compaction("")
            self._boundary = data
        elif kind == _ASSISTANT and message:
            self._read_answer(name, message)
        elif kind == _USER and message and not data.get("isMeta"):
            self._read_user(name, message)
        else:
            self._add_event(name, kind, data)

    def _add_event(self, name: str, kind: str, data: dict[str, Any]) -> None:
        text = as_text(data.get("content")) or f"A record of Claude Code: {kind or 'unknown'}"
        if data.get("isMeta"):
            kind, text = "system", "Text that Claude Code added for the model"
        self._list.add_event(name, kind or "unknown", text, data)

    def _end_compaction(self, summary: str) -> None:
        if not (boundary := self._boundary):
            return
        kept = as_text(get_nested(boundary, "compactMetadata.preservedSegment.headUuid"))
        self._list.add(
            ForeignCompaction(
                id=as_text(boundary.get("uuid")) or "compaction",
                at=self._list.at,
                summary=summary or "(the summary is not stored)",
                kept_from=self._resolve(kept),
            )
        )
        self._boundary = {}

    def _resolve(self, name: str) -> str | None:
        known = {item.id for item in self._list.items}
        name = self._names.get(name, name)
        return name if name in known else None

    def _read_answer(self, name: str, message: dict[str, Any]) -> None:
        content = message.get("content")
        blocks = [as_object(block) for block in as_list(content)]
        model = as_text(message.get("model"))
        part = ForeignMessage(
            id=name,
            role=Role.ASSISTANT,
            at=self._list.at,
            text=content if isinstance(content, str) else _join(blocks, "text"),
            reasoning=_join(blocks, "thinking"),
            calls=[_read_call(block) for block in blocks if block.get("type") == "tool_use"],
            model=f"anthropic:{model}" if model and not model.startswith("<") else "",
            usage=_read_usage(as_object(message.get("usage"))),
        )
        key = as_text(message.get("id")) or name
        self._list.add_answer(key, part)
        first = self._names.setdefault(f"answer:{key}", name)
        self._names[name] = first

    def _read_user(self, name: str, message: dict[str, Any]) -> None:
        content = message.get("content")
        blocks = [as_object(block) for block in as_list(content)]
        results = [block for block in blocks if block.get("type") == "tool_result"]
        rest = [block for block in blocks if block.get("type") != "tool_result"]
        at, called = self._list.at, self._list.list_call_names() if results else {}
        if results:
            given = [_read_result(block, called) for block in results]
            self._list.add(ForeignMessage(id=name, role=Role.TOOL, at=at, results=given))
        if rest or not results:
            text = content if isinstance(content, str) else _join(rest, "text")
            files = [file for block in rest if (file := _read_file(block)) is not None]
            own = f"{name}:text" if results else name
            self._list.add(ForeignMessage(id=own, role=Role.USER, at=at, text=text, files=files))


def _join(blocks: Sequence[dict[str, Any]], kind: str) -> str:
    texts = [as_text(block.get(kind)) for block in blocks if block.get("type") == kind]
    return "\n\n".join(filter(None, texts))


def _read_call(block: dict[str, Any]) -> ForeignCall:
    given = block.get("input")
    arguments = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return ForeignCall(
        id=as_text(block.get("id")), name=as_text(block.get("name")), arguments=arguments
    )


def _read_result(block: dict[str, Any], called: dict[str, str]) -> ForeignResult:
    call_id = as_text(block.get("tool_use_id"))
    return ForeignResult(
        call_id=call_id,
        name=called.get(call_id, ""),
        text=read_content(block.get("content")),
        is_error=block.get("is_error") is True,
    )


def _read_file(block: dict[str, Any]) -> ForeignFile | None:
    if block.get("type") not in ("image", "document"):
        return None
    source = as_object(block.get("source"))
    try:
        content = base64.b64decode(as_text(source.get("data"))) or None
    except (ValueError, binascii.Error):
        content = None
    name = as_text(block.get("title")) or as_text(block.get("type"))
    return ForeignFile(name=name, media_type=as_text(source.get("media_type")), content=content)


def _read_usage(usage: dict[str, Any]) -> ForeignUsage | None:
    def count(key: str) -> int:
        value = usage.get(key)
        return value if isinstance(value, int) else 0

    if not usage:
        return None
    cached = count("cache_read_input_tokens")
    return ForeignUsage(
        input_tokens=count("input_tokens") + cached + count("cache_creation_input_tokens"),
        cached_tokens=cached,
        output_tokens=count("output_tokens"),
    )
