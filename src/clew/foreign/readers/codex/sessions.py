"""Sessions of Codex: the lines of one file as a conversation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from clew.core.entry import Role
from clew.core.payload import as_list, as_object, as_text
from clew.foreign.chat_messages import read_content, read_data_url, read_moment
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

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from clew.foreign.jsonl import JsonLine

#: Texts with the role of the user that Codex wrote for the model begin so.
_ADDED: Final = (
    "<environment_context>",
    "<user_instructions>",
    "<skills_instructions>",
    "<permissions instructions>",
    "<turn_aborted>",
    "# AGENTS.md instructions",
)
_CALLS: Final = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call")
_OUTPUTS: Final = ("function_call_output", "custom_tool_call_output")


def read_session(path: Path, titles: Mapping[str, str]) -> ForeignConversation | None:
    """Return the conversation of a file; ``None`` if nothing is written yet."""
    reader = _Reader(read_mtime(path))
    for line in iter_lines(path):
        reader.read_line(line)
    if not reader.list.items:
        return None
    name = reader.name or path.stem
    return ForeignConversation(
        id=name,
        items=reader.list.items,
        created_at=min(item.at for item in reader.list.items),
        title=titles.get(name, ""),
        branch_of=reader.source,
        is_growing=is_growing(path),
    )


class _Reader:
    def __init__(self, at: int) -> None:
        self.list = ItemList(at)
        self.name, self.source = "", None
        #: Key of the model's answer that is being read, and of the last one.
        self._answer = self._last_answer = ""
        self._model = ""
        self._names: dict[str, str] = {}

    def read_line(self, line: JsonLine) -> None:
        if line.is_damaged:
            self.list.add_damaged(line)
            return
        data, name = line.data, f"line-{line.number}"
        self.list.at = read_moment(data.get("timestamp"), self.list.at)
        kind = as_text(data.get("type"))
        payload = as_object(data.get("payload"))
        if "payload" not in data:
            self._read_old(name, kind, data)
        elif kind == "response_item":
            self._read_item(name, payload)
        elif kind == "compacted":
            self._end_answer()
            summary = as_text(payload.get("message")) or "(the summary is not readable)"
            self.list.add(ForeignCompaction(id=name, at=self.list.at, summary=summary))
        else:
            self._read_about(name, kind, payload)

    def _read_old(self, name: str, kind: str, data: dict[str, Any]) -> None:
        """Read a line of releases that did not wrap what the model saw."""
        if kind:
            self._read_item(name, data)
        else:
            self._read_about(name, "session_meta" if "id" in data else "state", data)

    def _read_about(self, name: str, kind: str, payload: dict[str, Any]) -> None:
        inner = as_text(payload.get("type"))
        if kind == "session_meta" and not self.name:
            self.name = as_text(payload.get("id"))
            parent = get_nested(payload, "source.subagent.thread_spawn.parent_thread_id")
            source = payload.get("forked_from_id") or parent
            self.source = as_text(source) or None
        elif kind == "turn_context":
            self._model = as_text(payload.get("model")) or self._model
        elif inner in ("task_started", "turn_aborted"):
            self._end_answer()
        elif inner == "token_count":
            self._count_tokens(as_object(get_nested(payload, "info.last_token_usage")))
        text = as_text(payload.get("message")) or f"A record of Codex: {inner or kind}"
        self.list.add_event(name, inner or kind or "unknown", text, payload)

    def _count_tokens(self, usage: dict[str, Any]) -> None:
        counts = [
            value if isinstance(value := usage.get(key), int) else 0
            for key in ("input_tokens", "cached_input_tokens", "output_tokens")
        ]
        if not any(counts) or not self._last_answer:
            return
        told = ForeignUsage(
            input_tokens=counts[0], cached_tokens=counts[1], output_tokens=counts[2]
        )
        part = ForeignMessage(id="", role=Role.ASSISTANT, at=self.list.at, usage=told)
        self.list.add_answer(self._last_answer, part)

    def _read_item(self, name: str, item: dict[str, Any]) -> None:
        kind, role = as_text(item.get("type")), as_text(item.get("role"))
        if kind == "reasoning":
            summary = read_content(item.get("summary")) or read_content(item.get("content"))
            self._add_part(name, reasoning=summary)
        elif kind == "message" and role == "assistant":
            self._add_part(name, text=read_content(item.get("content")))
        elif kind in _CALLS:
            call = _read_call(kind, item, name)
            self._names[call.id] = call.name
            self._add_part(name, call=call)
        elif kind in _OUTPUTS:
            self._add_result(name, item)
        elif kind == "message" and role == "user":
            self._read_user(name, item)
        else:
            added = "system" if kind == "message" else kind
            text = read_content(item.get("content")) or f"A record of Codex: {kind or 'unknown'}"
            self.list.add_event(name, added or "unknown", text, item)

    def _read_user(self, name: str, item: dict[str, Any]) -> None:
        text = read_content(item.get("content"))
        if text.lstrip().startswith(_ADDED):
            self.list.add_event(name, "system", text, item)
            return
        self._end_answer()
        urls = [as_text(as_object(part).get("image_url")) for part in as_list(item.get("content"))]
        files: list[ForeignFile] = []
        for url in filter(None, urls):
            files.append(read_data_url(url, name=f"file-{len(files) + 1}"))
        self.list.add(
            ForeignMessage(id=name, role=Role.USER, at=self.list.at, text=text, files=files)
        )

    def _add_part(
        self, name: str, *, text: str = "", reasoning: str = "", call: ForeignCall | None = None
    ) -> None:
        """Add what the model said; until a result or a prompt it is one answer."""
        self._answer = self._last_answer = self._answer or name
        part = ForeignMessage(
            id=name,
            role=Role.ASSISTANT,
            at=self.list.at,
            text=text,
            reasoning=reasoning,
            calls=[call] if call is not None else (),
            model=self._model,
        )
        self.list.add_answer(self._answer, part)

    def _add_result(self, name: str, item: dict[str, Any]) -> None:
        self._end_answer()
        call_id, output = as_text(item.get("call_id")), item.get("output")
        text, failed = _read_output(output)
        result = ForeignResult(
            call_id=call_id, name=self._names.get(call_id, ""), text=text, is_error=failed
        )
        self.list.add(ForeignMessage(id=name, role=Role.TOOL, at=self.list.at, results=[result]))

    def _end_answer(self) -> None:
        self._answer = ""


def _read_call(kind: str, item: dict[str, Any], name: str) -> ForeignCall:
    given = item.get("arguments", item.get("input", item.get("action")))
    return ForeignCall(
        id=as_text(item.get("call_id")) or as_text(item.get("id")) or name,
        name=as_text(item.get("name")) or kind.removesuffix("_call"),
        arguments=given if isinstance(given, str) else json.dumps(given, ensure_ascii=False),
    )


def _read_output(output: object) -> tuple[str, bool]:
    """Return the text of an output, and whether it tells that the call failed."""
    told = as_object(output)
    text = read_content(told.get("content", told.get("output"))) if told else read_content(output)
    try:
        inner = as_object(json.loads(text))
    except (ValueError, RecursionError):
        inner = {}
    code = get_nested(inner, "metadata.exit_code")
    failed = told.get("success") is False or (isinstance(code, int) and code != 0)
    return (as_text(inner["output"]) if "output" in inner else text), failed
