"""
A server of the official SDK, as a program of its own.

The first argument is a file with what it offers, as JSON; it is read again for each list.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

_PLAN = Path(sys.argv[-1])


def read_plan() -> dict[str, Any]:
    return json.loads(_PLAN.read_text())


def look(place: str) -> str:
    """Return what the server can see of a place, and its environment."""
    return json.dumps({"there": Path(place).exists(), "env": dict(os.environ)})


async def list_tools(_ctx: Any, _params: Any) -> types.ListToolsResult:
    tools = [
        types.Tool(
            name=name,
            description=one.get("description", ""),
            input_schema={"type": "object", **one.get("schema", {})},
            annotations=types.ToolAnnotations(**one.get("annotations", {})),
        )
        for name, one in read_plan()["tools"].items()
    ]
    return types.ListToolsResult(tools=tools)


async def call_tool(_ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    plan = read_plan()["tools"][params.name]
    calls = _PLAN.with_suffix(".calls")
    with suppress(OSError), calls.open("a") as file:
        meta = dict(params.meta or {})
        key = meta.get("clew.dev/idempotency-key")
        file.write(json.dumps([params.name, params.arguments, key]))
        file.write("\n")
    text = json.dumps(params.arguments)
    match plan.get("does"):
        case "die":
            os._exit(3)
        case "die once" if len(calls.read_text().splitlines()) == 1:
            os._exit(3)
        case "hang":
            await asyncio.sleep(3600)
        case "huge":
            text = "x" * 5_000_000
        case "fail":
            raise ValueError("it does not work")
        case "look":
            text = look(plan["place"])
        case _:
            pass
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def list_resources(_ctx: Any, _params: Any) -> types.ListResourcesResult:
    found = read_plan().get("resources", {})
    return types.ListResourcesResult(resources=[types.Resource(name=uri, uri=uri) for uri in found])


async def read_resource(_ctx: Any, params: Any) -> types.ReadResourceResult:
    text = read_plan()["resources"][str(params.uri)]
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=str(params.uri), text=text)]
    )


async def serve() -> None:
    match read_plan().get("begins"):
        case "hang":
            await asyncio.sleep(3600)
        case "garbage":
            os.write(1, b"hello, I am a server\n")
            os.write(1, b"{ not json\n")
        case "die":
            os.write(2, b"no licence\n")
            os._exit(7)
        case _:
            pass
    server: Any = Server(
        "test",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
    )
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(serve())
