"""Long tool results: the model gets head and tail, and a tool that reads any range."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pydantic_ai.toolsets import FunctionToolset, WrapperToolset

from clew.core.journal import FullToolResult
from clew.core.text import sanitize_text

if TYPE_CHECKING:
    from pydantic_ai import RunContext
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

    from clew.agent.protocols import Journal

READ_TOOL: Final = "read_result"
#: Bytes of one result stored in full.
MAX_STORED_BYTES: Final = 8_000_000
#: Characters that one call reads: the maximum and the default.
MAX_READ_CHARS, DEFAULT_READ_CHARS = 40_000, 20_000

_READ_HINT_PATTERN = re.compile(
    r"\n\[… (\d+) of (\d+) characters left out(.*?)read_result\(\"([^\"]+)\", start=(\d+)\).*?…\]\n"
)


def make_full_result(text: str, *, tool: str, call_id: str) -> FullToolResult:
    """Return a result in its full stored form: UTF-8, up to the maximum size."""
    content = sanitize_text(text).encode()[:MAX_STORED_BYTES]
    return FullToolResult(call_id=call_id, tool=tool, content=content)


def abridge_result(text: str, most: int, *, call_id: str) -> str:
    """
    Return head and tail of a result, with instructions to read the rest in between.

    An abridged result can be abridged further; its instructions stay correct.
    """
    head, tail, total = text, text, len(text)
    if (before := _READ_HINT_PATTERN.search(text)) is not None:
        head, tail, total = text[: before.start()], text[before.end() :], int(before[2])
        call_id = before[4]
    if len(head) <= most // 2 and len(tail) <= most // 2:
        return text
    half = most // 2
    first, last = head[:half], tail[-half:]
    start = len(first)
    return (
        f"{first}\n[… {total - start - len(last)} of {total} characters left out; "
        f'{READ_TOOL}("{call_id}", start={start}) reads them …]\n{last}'
    )


def format_excerpt(text: str, start: int, length: int) -> str:
    """Return a range of a result, preceded by its position."""
    start = max(0, min(start, len(text)))
    end = min(len(text), start + max(1, min(length, MAX_READ_CHARS)))
    more = f"; the next begins at {end}" if end < len(text) else ""
    return f"[characters {start} to {end} of {len(text)}{more}]\n{text[start:end]}"


def read_result(call_id: str, start: int = 0, length: int = DEFAULT_READ_CHARS) -> str:
    """Read a part of a long tool result that was left out, by its character range."""
    raise NotImplementedError  # declared for the model; each run reads from its own journal


@cache
def _declare_reader() -> FunctionToolset[Any]:
    # To describe a function takes as long as a whole request: once, not in every turn.
    reader: FunctionToolset[Any] = FunctionToolset()
    reader.add_function(read_result, name=READ_TOOL, metadata={"effect": "pure"})
    return reader


@dataclass
class StoredResultsToolset(WrapperToolset[Any]):
    """Toolset plus the tool that reads long results; the same list at each step."""

    journal: Journal

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = await super().get_tools(ctx)
        # Without tools there are no results; a tool of that name belongs to the user.
        if not tools or READ_TOOL in tools:
            return tools
        return {**tools, **await _declare_reader().get_tools(ctx)}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        if tool.toolset is _declare_reader():
            return await self._read_result(**tool_args)
        return await super().call_tool(name, tool_args, ctx, tool)

    async def _read_result(
        self, call_id: str, start: int = 0, length: int = DEFAULT_READ_CHARS
    ) -> str:
        text = await self.journal.read_result(call_id)
        if text is None:
            return f"error: no result of a call {call_id!r} is kept in this conversation"
        return format_excerpt(text, start, length)


def add_result_reader(toolset: AbstractToolset[Any], journal: Journal) -> AbstractToolset[Any]:
    """Return the toolset with the tool that reads long results."""
    return StoredResultsToolset(toolset, journal)
