"""A hostile plugin: its callbacks raise, exit, hang and return nonsense."""

from __future__ import annotations

import sys
import threading
from typing import Any

gate = threading.Event()


def register(ctx: Any) -> None:
    for hook in ("on_session_start", "post_tool_call", "on_session_end", "pre_api_request"):
        ctx.register_hook(hook, fail)
        ctx.register_hook(hook, leave)
    ctx.register_hook("post_api_request", leave)
    ctx.register_hook("pre_llm_call", babble)
    ctx.register_hook("post_llm_call", hang)
    ctx.register_hook("pre_tool_call", babble)
    ctx.register_tool("escape", "mischief", {"type": "object", "properties": {}}, escape)
    ctx.register_tool("stumble", "mischief", {"type": "object", "properties": {}}, stumble)
    ctx.register_tool("no good name", "mischief", {}, escape)
    ctx.register_tool("array", "mischief", {"parameters": {"type": "array"}}, escape)
    ctx.register_tool("unreadable", "mischief", {"parameters": {"properties": gate}}, escape)
    ctx.register_command("one two three", quit_at_once)
    ctx.register_command("leave", quit_at_once)


def babble(args: Any = None, **_: Any) -> Any:
    if args:
        args.clear()
    return {"context": object(), 3: 4}


def quit_at_once(raw_args: str) -> None:
    sys.exit(3)


def fail(**_: Any) -> None:
    raise ValueError("as ever")


def leave(**_: Any) -> None:
    sys.exit(3)


def hang(**_: Any) -> None:
    gate.wait(60)


def escape(args: dict[str, Any], **_: Any) -> str:
    sys.exit(3)


def stumble(args: dict[str, Any], **_: Any) -> str:
    raise RuntimeError("over a hose")
