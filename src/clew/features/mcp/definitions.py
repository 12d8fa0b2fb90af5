"""Definitions of tools, as servers list them, and the rows in which they are kept."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from clew.core.effect import Effect
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clew.store.contract import Tx

#: Limits of what a server can have us keep: longer definitions and names are left out.
MAX_DEFINITION: Final = 64_000
MAX_NAME: Final = 256
MAX_TOOLS: Final = 2_000


class McpTool(Record, dict=True):
    """A tool of a server, in the server's words."""

    server: str
    name: str
    description: str
    schema: Mapping[str, Any]
    #: ``readOnlyHint`` and the like, where the server gives them.
    annotations: Mapping[str, bool]

    @cached_property
    def definition(self) -> str:
        """Return what is stored: JSON in ASCII, since a database keeps no zero characters."""
        made = {"description": self.description, "schema": self.schema}
        return json.dumps({**made, "annotations": self.annotations}, sort_keys=True)

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.definition.encode()).hexdigest()

    def find_effect(self, trust: str) -> Effect:
        """Return what happens if it runs twice, as far as the server's word counts."""
        if trust == "none":
            return Effect.ONCE
        if self.annotations.get("readOnlyHint"):
            return Effect.PURE
        return Effect.IDEMPOTENT if self.annotations.get("idempotentHint") else Effect.ONCE

    def reaches_outside(self) -> bool:
        """Return whether it may reach others than the server itself; unless it denies that."""
        return self.annotations.get("openWorldHint", True)


def parse_tool(server: str, name: str, definition: str) -> McpTool:
    """Return a tool of its row."""
    fields: dict[str, Any] = json.loads(definition)
    return McpTool(
        server=server,
        name=name,
        description=fields["description"],
        schema=fields["schema"],
        annotations=fields["annotations"],
    )


def is_storable(tool: McpTool) -> bool:
    """Return whether a tool can be kept, and its name be used in calls."""
    if not tool.name or len(tool.name) > MAX_NAME or not tool.name.isprintable():
        return False
    return len(tool.definition) <= MAX_DEFINITION


def list_tools(t: Tx, servers: Sequence[str]) -> list[McpTool]:
    """Return the tools of servers as they were seen last."""
    rows = t.fetch_all("SELECT server, name, definition FROM mcp_tool ORDER BY server, name")
    return [parse_tool(*row) for row in rows if row[0] in servers]


def replace_tools(t: Tx, server: str, tools: Sequence[McpTool]) -> None:
    """Store the tools of a server; rows of those that are as before stay as they are."""
    rows = t.fetch_all("SELECT name, digest FROM mcp_tool WHERE server = $1", server)
    known: dict[str, str] = dict(rows)
    for gone in sorted(known.keys() - {tool.name for tool in tools}):
        t.execute("DELETE FROM mcp_tool WHERE server = $1 AND name = $2", server, gone)
    for tool in tools:
        if known.get(tool.name) != tool.digest:
            _write_tool(t, tool)


def _write_tool(t: Tx, tool: McpTool) -> None:
    t.execute(
        """
        INSERT INTO mcp_tool (server, name, definition, digest, seen_at) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (server, name) DO UPDATE SET
            definition = excluded.definition, digest = excluded.digest, seen_at = excluded.seen_at
        """,
        tool.server,
        tool.name,
        tool.definition,
        tool.digest,
        t.now,
    )
