"""Tools of MCP servers that are in the lists of sessions: which, and what they are called there."""

from __future__ import annotations

import hashlib
import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

from clew.core.text import sanitize_text
from clew.core.tool_declaration import BoundTool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clew.features.mcp.connection import ServerConnection
    from clew.features.mcp.definitions import McpTool

#: Tools of a server whose tools are listed; those of one with more are only found.
MAX_SHOWN: Final = 10
#: The tool that they call.
CALLED: Final = "mcp_call"
#: What providers take as a name, at most; and as that of a parameter.
_MAX_NAME: Final = 64
_PARAMETER: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_PLAIN: Final = re.compile(r"[a-zA-Z0-9_-]+")
#: The end of a name that was made: of the digest of server and name.
_DIGEST_LENGTH: Final = 16
_MADE: Final = re.compile(rf".*_[0-9a-f]{{{_DIGEST_LENGTH}}}")
#: Characters of a name that are kept before its digest.
_KEPT: Final = 30
_MAX_DESCRIPTION: Final = 1_000
_MAX_SCHEMA: Final = 8_000
#: Combinations at the top that providers refuse.
_REFUSED: Final = frozenset({"anyOf", "oneOf", "allOf", "not", "enum"})


def make_bound_tools(one: ServerConnection) -> Iterator[BoundTool]:
    """Yield the tools of a server as lists of sessions have them; none if it is not shown."""
    if not one.server.show:
        return
    listed = len(one.tools) <= MAX_SHOWN
    for tool in one.tools.values():
        if is_presentable(tool):
            yield _bind(tool, listed=listed)


def _bind(tool: McpTool, *, listed: bool) -> BoundTool:
    described = sanitize_text(tool.description).strip()
    if len(described) > _MAX_DESCRIPTION:
        described = f"{described[:_MAX_DESCRIPTION]}…"

    def bind(arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {"server": tool.server, "tool": tool.name, "args": dict(arguments)}

    return BoundTool(
        name=make_shown_name(tool.server, tool.name),
        description=described or tool.name,
        parameters={"type": "object", "properties": {}, **tool.schema},
        calls=CALLED,
        bind=bind,
        listed=listed,
    )


def make_shown_name(server: str, tool: str) -> str:
    """
    Return the name of a tool in lists: no two tools have the same.

    ``mcp__SERVER__TOOL`` where the first ``__`` after the server can be told to be that, and else a
    part of it with a digest of both names.
    """
    made = f"mcp__{server}__{tool}"
    is_split = "__" not in server and not server.endswith("_")
    if is_split and _is_plain(made) and not _MADE.fullmatch(made):
        return made
    digest = hashlib.sha256(json.dumps([server, tool]).encode()).hexdigest()[:_DIGEST_LENGTH]
    kept = re.sub(r"[^a-zA-Z0-9_-]+", "-", f"{server[:12]}__{tool}")[:_KEPT]
    return f"mcp__{kept}_{digest}"


def _is_plain(name: str) -> bool:
    return len(name) <= _MAX_NAME and _PLAIN.fullmatch(name) is not None


def is_presentable(tool: McpTool) -> bool:
    """
    Return whether every provider can be sent the schema of a tool.

    One refusal would fail each request of a session: what is unusual is only found.
    """
    return _judge(tool.definition)


@lru_cache(maxsize=2_000)
def _judge(definition: str) -> bool:
    # Each step of a turn lists the tools: a schema is judged once.
    schema: dict[str, Any] = json.loads(definition)["schema"]
    if schema.get("type", "object") != "object" or _REFUSED & schema.keys():
        return False
    try:
        text = json.dumps(schema, ensure_ascii=False, allow_nan=False)
        text.encode()
        return len(text) <= _MAX_SCHEMA and _is_sound(schema) and _has_plain_parameters(schema)
    except (ValueError, RecursionError):
        return False


def _is_sound(schema: Mapping[str, Any]) -> bool:
    from clew.features.mcp.arguments import is_schema  # noqa: PLC0415  (heavy)

    return is_schema(schema)


def _has_plain_parameters(part: object) -> bool:
    """Return whether all names of parameters are plain, and nothing refers to something else."""
    if isinstance(part, list):
        return all(map(_has_plain_parameters, cast("list[object]", part)))
    if not isinstance(part, dict):
        return True
    fields = cast("dict[str, object]", part)
    names = fields.get("properties")
    if isinstance(names, dict) and not all(
        map(_PARAMETER.fullmatch, cast("dict[str, Any]", names))
    ):
        return False
    return "$ref" not in fields and all(map(_has_plain_parameters, fields.values()))
