"""A tool as it is listed for people."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from clew.record import Record

if TYPE_CHECKING:
    from clew.core.effect import Effect
    from clew.core.tool_declaration import ToolDeclaration


class ApprovalDefault(enum.Enum):
    """Outcome of the calls of a tool that no rule is about."""

    RUNS = "runs"
    ASKS = "asks"
    #: Decided by the facts of each call.
    BY_CALL = "by call"


class ListedTool(Record):
    """A tool, or a toolset that names its tools only when it is opened."""

    name: str
    #: ``None`` if it is known only when the toolset is opened.
    effect: Effect | None
    default: ApprovalDefault
    #: Its results hold text that strangers may have written.
    untrusted: bool


def list_declared_tool(tool: ToolDeclaration) -> ListedTool:
    """Return the tool of a feature as it is listed."""
    default = ApprovalDefault.RUNS if tool.facts is None else ApprovalDefault.BY_CALL
    return ListedTool(name=tool.name, effect=tool.effect, default=default, untrusted=tool.untrusted)
