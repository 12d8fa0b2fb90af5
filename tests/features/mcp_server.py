"""
An MCP server that needs nothing but Python, and so starts at once, as a program of its own.

The first argument is a file with what it offers, as JSON; it is read again for each request. The
official SDK's server does the same in ``mcp_sdk_server.py``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

_PLAN = Path(sys.argv[-1])
_NOT_FOUND, _FAILED = -32601, -32603


class Refused(Exception):
    """An error of the protocol: its code and message."""


def read_plan() -> dict[str, Any]:
    return json.loads(_PLAN.read_text())


def initialize(params: dict[str, Any]) -> dict[str, Any]:
    told = {"instructions": read_plan().get("instructions")}
    return {
        "protocolVersion": params["protocolVersion"],
        "capabilities": {"tools": {"listChanged": True}, "resources": {}, "prompts": {}},
        "serverInfo": {"name": "test", "version": "1"},
        **{name: text for name, text in told.items() if text},
    }


def list_tools(_: dict[str, Any]) -> dict[str, Any]:
    tools = [
        {
            "name": name,
            "description": one.get("description", ""),
            "inputSchema": {"type": "object", **one.get("schema", {})},
            "annotations": {_camel(hint): value for hint, value in _hints(one).items()},
        }
        for name, one in read_plan()["tools"].items()
    ]
    return {"tools": tools}


def _hints(one: dict[str, Any]) -> dict[str, Any]:
    return one.get("annotations", {})


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def call_tool(params: dict[str, Any]) -> dict[str, Any] | None:
    plan = read_plan()["tools"][params["name"]]
    arguments: dict[str, Any] = params.get("arguments") or {}
    calls = _PLAN.with_suffix(".calls")
    with suppress(OSError), calls.open("a") as file:
        key = params.get("_meta", {}).get("clew.dev/idempotency-key")
        file.write(json.dumps([params["name"], arguments, key]))
        file.write("\n")
    text = json.dumps(arguments)
    match plan.get("does"):
        case "die":
            os._exit(3)
        case "die once" if len(calls.read_text().splitlines()) == 1:
            os._exit(3)
        case "die odd" if len(calls.read_text().splitlines()) % 2:
            os._exit(3)
        case "hang":
            return None
        case "huge":
            text = "x" * 5_000_000
        case "fail":
            raise Refused(_FAILED, "it does not work")
        case "ask":
            text = json.dumps(ask_for(plan["asks"]))
        case "look":
            seen = {"there": Path(plan["place"]).exists(), "env": dict(os.environ)}
            text = json.dumps(seen)
        case _:
            pass
    return {"content": [{"type": "text", "text": text}]}


def ask_for(method: str) -> dict[str, Any]:
    """Ask the client for something; what it answers."""
    params: dict[str, Any] = {
        "message": "Your name?",
        "requestedSchema": {"type": "object", "properties": {}},
    }
    if method == "sampling/createMessage":
        params = {"messages": [], "maxTokens": 10}
    request = {"jsonrpc": "2.0", "id": "q", "method": method, "params": params}
    print(json.dumps(request), flush=True)  # noqa: T201  (as below)
    return json.loads(sys.stdin.readline())


def list_prompts(_: dict[str, Any]) -> dict[str, Any]:
    found = read_plan().get("prompts", {})
    return {"prompts": [{"name": name, **one} for name, one in found.items()]}


def get_prompt(params: dict[str, Any]) -> dict[str, Any]:
    text = f"{params['name']} with {json.dumps(params.get('arguments'))}"
    content = {"type": "text", "text": text}
    return {"messages": [{"role": role, "content": content} for role in ("user", "assistant")]}


def list_resources(_: dict[str, Any]) -> dict[str, Any]:
    found = read_plan().get("resources", {})
    return {"resources": [{"name": uri, "uri": uri} for uri in found]}


def read_resource(params: dict[str, Any]) -> dict[str, Any]:
    found = read_plan().get("resources", {})
    if params["uri"] not in found:
        raise Refused(_FAILED, "there is no such resource")
    return {"contents": [{"uri": params["uri"], "text": found[params["uri"]]}]}


def ping(_: dict[str, Any]) -> dict[str, Any]:
    return {}


_METHODS = {
    "initialize": initialize,
    "tools/list": list_tools,
    "tools/call": call_tool,
    "resources/list": list_resources,
    "resources/read": read_resource,
    "prompts/list": list_prompts,
    "prompts/get": get_prompt,
    "ping": ping,
}


def answer(request: dict[str, Any]) -> dict[str, Any] | None:
    """Return the answer to a request; ``None`` if there is none."""
    head = {"jsonrpc": "2.0", "id": request["id"]}
    try:
        if request["method"] not in _METHODS:
            raise Refused(_NOT_FOUND, "there is no such method")
        result = _METHODS[request["method"]](request.get("params") or {})
    except Refused as error:
        code, message = error.args
        return {**head, "error": {"code": code, "message": message}}
    return None if result is None else {**head, "result": result}


def begin() -> None:
    match read_plan().get("begins"):
        case "hang":
            time.sleep(3600)
        case "garbage":
            os.write(1, b"hello, I am a server\n")
            os.write(1, b"{ not json\n")
        case "die":
            os.write(2, b"no licence\n")
            os._exit(7)
        case "rave":
            os.write(1, b"hello, I am a server\n{ not json\n")
            os._exit(1)
        case _:
            pass


def serve() -> None:
    begin()
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request and (told := answer(request)) is not None:
            print(json.dumps(told), flush=True)  # noqa: T201  (its output is the connection)


if __name__ == "__main__":
    serve()
