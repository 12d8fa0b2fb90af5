"""Tool calls as an editor shows them: kind, title, arguments, changes of files."""

from __future__ import annotations

import json
import posixpath
from typing import TYPE_CHECKING, Any, Final, cast

from acp.schema import (
    ContentToolCallContent,
    FileEditToolCallContent,
    TextContentBlock,
    ToolCallLocation,
)

from clew.core.escapes import make_visible
from clew.core.text import truncate_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from acp.schema import ToolCallStatus, ToolKind

    from clew.tui.state.view import ToolProgress

ToolContent = ContentToolCallContent | FileEditToolCallContent

_KINDS: Mapping[str, ToolKind] = {
    "edit_file": "edit",
    "list_files": "read",
    "mcp_find": "search",
    "mcp_read": "read",
    "process": "execute",
    "read_file": "read",
    "recall": "search",
    "run_python": "execute",
    "search_files": "search",
    "shell": "execute",
    "web_fetch": "fetch",
    "web_search": "search",
    "write_file": "edit",
}
#: The argument that says most about a call.
_TELLING: Final = ("command", "path", "url", "query", "pattern", "tool", "name")
_TITLE_LENGTH: Final = 120


def parse_arguments(args: str) -> object:
    """Return the arguments of a call as data; as text if they are no JSON."""
    try:
        return json.loads(args)
    except ValueError:
        return args


def kind_of(tool: str) -> ToolKind:
    """Return the kind of a tool; ``other`` for those of plugins and of MCP servers."""
    return _KINDS.get(tool, "other")


def title_of(tool: str, args: str) -> str:
    """Return a line about a call: the tool, and the argument that says most."""
    found = parse_arguments(args)
    fields = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    told = next((fields[name] for name in _TELLING if isinstance(fields.get(name), str)), "")
    line = " ".join(f"{tool} {told}".split())
    return make_visible(truncate_text(line, _TITLE_LENGTH))


def status_of(progress: ToolProgress) -> ToolCallStatus:
    """Return the status of a call; one that was denied has failed."""
    return _STATUS[progress.value]


_STATUS: Mapping[str, ToolCallStatus] = {
    "asked": "pending",
    "running": "in_progress",
    "done": "completed",
    "failed": "failed",
    "denied": "failed",
}


def find_changes(tool: str, args: str, *, workspace: str) -> list[FileEditToolCallContent]:
    """Return the change that a call makes to a file, as far as its arguments say it."""
    found = parse_arguments(args)
    if kind_of(tool) != "edit" or not isinstance(found, dict):
        return []
    fields = cast("dict[str, Any]", found)
    old, new = fields.get("old"), fields.get("new", fields.get("content"))
    path = fields.get("path")
    if not isinstance(path, str) or not isinstance(new, str):
        return []
    return [
        FileEditToolCallContent(
            type="diff",
            path=posixpath.join(workspace, path),
            old_text=old if isinstance(old, str) else None,
            new_text=new,
        )
    ]


def find_locations(args: str, *, workspace: str) -> list[ToolCallLocation] | None:
    """Return the file that a call is about."""
    found = parse_arguments(args)
    path = cast("dict[str, object]", found).get("path") if isinstance(found, dict) else None
    if not isinstance(path, str) or not path:
        return None
    return [ToolCallLocation(path=posixpath.join(workspace, path))]


def text_content(text: str) -> ContentToolCallContent:
    """Return a text as the content of a call."""
    return ContentToolCallContent(type="content", content=TextContentBlock(type="text", text=text))
