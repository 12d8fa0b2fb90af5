"""The tool ``process``, as the model sees it; what it needs is imported when it is called."""

# ruff: noqa: PLC0415

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from clew.core.tool_facts import CONFINED_LEVELS, ToolFacts

if TYPE_CHECKING:
    from collections.abc import Mapping


async def process(
    action: Literal["list", "read", "input", "stop"] = "list",
    id: str = "",
    text: str = "",
    end: bool = False,
    start: int = -1,
    length: int = 8000,
) -> str:
    """
    List, read, feed or stop the commands of this conversation.

    Args:
        action: What to do.
        id: prc_…
        text: Input, with line ends.
        end: Close the input.
        start: First byte to read; -1 reads the end.
        length: Bytes to read.
    """
    from clew.features.shell import process_calls

    match action:
        case "list":
            return await process_calls.list_all()
        case "read":
            return await process_calls.read(id, start=start, length=length)
        case "input":
            return await process_calls.send(id, text, end=end)
        case "stop":
            return await process_calls.stop(id)


async def make_process_facts(arguments: Mapping[str, Any]) -> ToolFacts | None:
    """Return the facts about a call: input of a command that nothing confines is a command."""
    from clew.features.shell import process_calls

    action, name = arguments.get("action", "list"), arguments.get("id", "")
    if action == "list":
        return ToolFacts(internal=True)
    if action in ("read", "stop"):
        foreign = await process_calls.tells_foreign_text(name)
        return ToolFacts(internal=True, untrusted_result=foreign)
    level = await process_calls.find_level(name)
    confined = level in CONFINED_LEVELS
    return ToolFacts(
        command=arguments.get("text"),
        sandbox=level,
        network=not confined,
        outward=not confined,
    )
