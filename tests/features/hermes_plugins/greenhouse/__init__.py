"""A plugin as one for Hermes Agent is written: it uses each member of ctx that Clew has."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from . import diary

HOOKS = (
    "on_session_start",
    "on_session_end",
    "on_session_finalize",
    "on_session_reset",
    "post_llm_call",
    "post_tool_call",
    "pre_api_request",
    "post_api_request",
    "api_request_error",
    "on_cron_start",
)
CONTEXT: list[Any] = []


def register(ctx: Any) -> None:
    CONTEXT.append(ctx)
    for hook in HOOKS:
        ctx.register_hook(hook, partial(observe, hook))
    ctx.register_hook("pre_llm_call", add_weather)
    ctx.register_hook("pre_tool_call", ask_first)
    ctx.register_hook("pre_tool_call", forbid)
    schema = {
        "name": "water_bed",
        "description": "Water a bed.",
        "parameters": {
            "type": "object",
            "properties": {"bed": {"type": "string"}},
            "required": ["bed"],
        },
    }
    ctx.register_tool("water_bed", "garden", schema, water)
    ctx.register_tool(
        name="open_roof", toolset="garden", schema={}, handler=roof, check_fn=lambda: False
    )
    ctx.register_tool(
        name="ring", toolset="garden", schema={}, handler=roof, requires_env=["GREENHOUSE_BELL"]
    )
    ctx.register_tool(name="list_files", toolset="garden", schema={}, handler=roof)
    ctx.register_tool(name="think", toolset="garden", schema={}, handler=partial(think, ctx))
    ctx.register_command("beds", list_beds, description="List the beds.", args_hint="[BED]")
    ctx.register_cli_command("greenhouse", help="Tend it.", setup_fn=add_arguments, handler_fn=tend)
    ctx.register_skill("pruning", Path(__file__).parent / "skills" / "pruning" / "SKILL.md")
    ctx.register_memory_provider(Almanac())
    ctx.register_middleware("tool_request", spell)
    ctx.register_auxiliary_task("weather", display_name="Weather")
    ctx.register_browser_provider(object())
    ctx.register_system_prompt_section("greenhouse", "Plants come first.")


def observe(hook: str, **arguments: Any) -> None:
    diary.note(hook, arguments)


def add_weather(user_message: str, is_first_turn: bool, **arguments: Any) -> dict[str, str]:
    told = {**arguments, "user_message": user_message, "is_first_turn": is_first_turn}
    diary.note("pre_llm_call", told)
    return {"context": f"It rains, and {len(arguments['conversation_history'])} were here before."}


def ask_first(tool_name: str, args: dict[str, Any], **_: Any) -> dict[str, str] | None:
    return {"action": "approve"} if args.get("bed") in ("roses", "nettles") else None


def forbid(tool_name: str, args: dict[str, Any], **_: Any) -> dict[str, str] | None:
    if args.get("bed") == "nettles":
        return {"action": "block", "message": "Nettles want no water."}
    return None


def spell(tool_name: str, args: dict[str, Any], **_: Any) -> dict[str, Any] | None:
    return {"args": {"bed": "lilies"}} if args.get("bed") == "lillies" else None


def water(args: dict[str, Any], **kw: Any) -> str:
    diary.note("water", {**args, **kw})
    return json.dumps({"wet": args["bed"], "home": os.environ["HERMES_HOME"]})


def roof(args: dict[str, Any], **_: Any) -> str:
    raise AssertionError("it was not offered")


def think(ctx: Any, args: dict[str, Any], **_: Any) -> str:
    asked = ctx.llm.complete([{"role": "user", "content": "Which bed is dry?"}], max_tokens=50)
    parsed = ctx.llm.complete_structured(instructions='{"dry": 2}', json_schema={"type": "object"})
    inner = ctx.dispatch_tool("water_bed", {"bed": "ferns"})
    refused = ctx.dispatch_tool("run_command", {"command": "ls"})
    return json.dumps([asked.text, parsed.parsed, inner, refused])


async def list_beds(raw_args: str) -> str:
    return f"roses, lilies; {raw_args}"


def add_arguments(parser: Any) -> None:
    parser.add_argument("--bed")


def tend(args: Any) -> int:
    sys.stdout.write(f"tended {args.bed}\n")
    return 0


class Almanac:
    """A memory provider."""

    name = "almanac"

    def is_available(self) -> bool:
        return True

    def initialize(self, session_id: str, **_: Any) -> None:
        diary.note("initialize", {"session_id": session_id})

    def system_prompt_block(self) -> str:
        return "The almanac knows the seasons."

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        return f"Remembered about {query[:5]}: sow in spring."

    def sync_turn(self, user: str, assistant: str, *, session_id: str = "") -> None:
        diary.note("sync_turn", {"user": user, "assistant": assistant})

    def shutdown(self) -> None:
        diary.note("shutdown", {})

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [{"name": "almanac_search", "description": "Search.", "parameters": {}}]

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **_: Any) -> str:
        return json.dumps({"found": "sow in spring"})
