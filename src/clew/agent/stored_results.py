"""Long tool results: the model is given head and tail, and a tool that reads the rest by range."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pydantic_ai.toolsets import FunctionToolset, WrapperToolset

from clew.core.journal import FullToolResult
from clew.core.text import sanitize_text

if TYPE_CHECKING:
    from pydantic_ai import RunContext
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

    from clew.agent.ports import Journal

TOOL: Final = "read_result"
#: Bytes of one result that are kept whole.
LARGEST: Final = 8_000_000
#: Characters that one call reads, and by default.
MOST, USUAL = 40_000, 20_000

_POINTER = re.compile(
    r"\n\[… (\d+) of (\d+) characters left out(.*?)read_result\(\"([^\"]+)\", start=(\d+)\).*?…\]\n"
)


def keep_whole(text: str, *, tool: str, call_id: str) -> FullToolResult:
    """Return a result as it is kept: in UTF-8, and no more than may be."""
    content = sanitize_text(text).encode()[:LARGEST]
    return FullToolResult(call_id=call_id, tool=tool, content=content)


def abridge(text: str, most: int, *, call_id: str) -> str:
    """
    Return the beginning and the end of a result, and between them how to read the rest.

    One that was abridged before is abridged further, and still says how.
    """
    head, tail, total = text, text, len(text)
    if (before := _POINTER.search(text)) is not None:
        head, tail, total = text[: before.start()], text[before.end() :], int(before[2])
        call_id = before[4]
    if len(head) <= most // 2 and len(tail) <= most // 2:
        return text
    half = most // 2
    first, last = head[:half], tail[-half:]
    start = len(first)
    return (
        f"{first}\n[… {total - start - len(last)} of {total} characters left out; "
        f'{TOOL}("{call_id}", start={start}) reads them …]\n{last}'
    )


def cut_out(text: str, start: int, length: int) -> str:
    """Return a range of a result, with where it lies."""
    start = max(0, min(start, len(text)))
    end = min(len(text), start + max(1, min(length, MOST)))
    more = f"; the next begins at {end}" if end < len(text) else ""
    return f"[characters {start} to {end} of {len(text)}{more}]\n{text[start:end]}"


@dataclass
class WithStoredResults(WrapperToolset[Any]):
    """Tools, and beside them the one that reads their long results; the same list at each step."""

    journal: Journal
    own: FunctionToolset[Any] = field(init=False)

    def __post_init__(self) -> None:
        async def read_result(call_id: str, start: int = 0, length: int = USUAL) -> str:
            """Read a part of a long tool result that was left out, by its character range."""
            text = await self.journal.read_result(call_id)
            if text is None:
                return f"error: no result of a call {call_id!r} is kept in this conversation"
            return cut_out(text, start, length)

        self.own = FunctionToolset()
        self.own.add_function(read_result, name=TOOL, metadata={"effect": "pure"})

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = await super().get_tools(ctx)
        # Without tools there are no results; a tool of that name is somebody's own.
        if not tools or TOOL in tools:
            return tools
        return {**tools, **await self.own.get_tools(ctx)}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        if tool.toolset is self.own:
            return await self.own.call_tool(name, tool_args, ctx, tool)
        return await super().call_tool(name, tool_args, ctx, tool)


def with_stored_results(toolset: AbstractToolset[Any], journal: Journal) -> AbstractToolset[Any]:
    """Return the toolset with the tool that reads long results."""
    return WithStoredResults(toolset, journal)
