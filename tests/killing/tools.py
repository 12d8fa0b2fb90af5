"""Tools of every effect, which tell what they did in a log outside the store."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from pydantic_ai import RunContext, Tool

from tests.killing.killer import die
from tests.killing.plans import result_of
from tests.killing.records import Effect
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.killing.killer import Killer
    from tests.killing.records import Log

#: The effect that each tool declares. ``pay`` needs a person's word before it runs.
EFFECTS = {
    "look": "pure",
    "read": "pure",
    "dump": "pure",
    "put": "idempotent",
    "send": "once",
    "wipe": "ask",
    "pay": "once",
    "linger": "pure",
    "crash": "pure",
    "hog": "pure",
}
#: Seconds for which ``hog`` lets nothing else run: longer than the shortest lease.
HOGGED = 2.5
APPROVED_FIRST = frozenset({"pay"})
#: Runs in a thread.
_SYNCHRONOUS = frozenset({"read"})


def make_tools(effects: Log, killer: Killer, control: Path) -> list[Tool[Any]]:
    """The tools of one process."""
    return [_tool(name, effects, killer, control) for name in EFFECTS]


def gate_in(control: Path) -> Path:
    """``linger`` returns once this file is there."""
    return control / "gate"


def _tool(name: str, effects: Log, killer: Killer, control: Path) -> Tool[Any]:
    def act(ctx: RunContext[Any], what: str) -> str:
        killer.reach(f"tool {name} before")
        assert ctx.tool_call_id is not None
        record = Effect(what=what, tool=name, effect=EFFECTS[name], key=ctx.tool_call_id)
        effects.add(record, sync=True)
        killer.reach(f"tool {name} after")
        return result_of(name, what)

    async def act_in_loop(ctx: RunContext[Any], what: str) -> str:
        """Do something."""
        # Calls of a batch are under way together.
        await asyncio.sleep(0.002)
        if name == "linger":
            await _until(gate_in(control))
        if name == "crash":
            die()
        if name == "hog":
            time.sleep(HOGGED)  # noqa: ASYNC251  (as a tool that computes without a pause)
            await asyncio.sleep(0.1)
        return act(ctx, what)

    def act_in_thread(ctx: RunContext[Any], what: str) -> str:
        """Do something in a thread."""
        return act(ctx, what)

    return Tool(
        act_in_thread if name in _SYNCHRONOUS else act_in_loop,
        name=name,
        metadata={"effect": EFFECTS[name]},
        requires_approval=name in APPROVED_FIRST,
    )


async def _until(path: Path) -> None:
    await wait_until(path.exists, f"the file {path.name}")
