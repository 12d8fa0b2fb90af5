"""Tools whose calls are decided in every way there is, and turns that call them all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic_ai import Tool

from clew.core.grant import GrantTerm
from clew.core.tool_facts import PathFact, ToolFacts
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.core.inbox import AcceptResult
    from clew.store.contract import Tx
    from tests.line.tools import Tools
    from tests.line.world import World

_OUTSIDE: Final = ToolFacts(paths=(PathFact(path="/srv/data/x", inside=False),))
#: Each tool with its facts; ``kept`` is allowed always when it is asked about first.
KINDS: Final[Mapping[str, ToolFacts | None]] = {
    "own": None,
    "look": ToolFacts(),
    "listed": ToolFacts(command="timeout 5 git status && ls -la", sandbox="host"),
    "wiped": ToolFacts(command="rm -rf x", sandbox="host"),
    "kept": ToolFacts(command="git diff HEAD", sandbox="host"),
    "reads": _OUTSIDE,
    "unknown": None,
    "boxed": ToolFacts(command="make $x", sandbox="read"),
}
FLAGS: Final = {
    "approvals.rule": [
        {"tool": "listed", "command": ["git status *", "ls *"], "then": "allow"},
        {"tool": "w*", "then": "deny"},
    ]
}


def make_tools(_: Tools) -> list[Tool[Any]]:
    return [_make_tool(name, facts) for name, facts in KINDS.items()]


def _make_tool(name: str, facts: ToolFacts | None) -> Tool[Any]:
    async def act(what: str) -> str:
        """Act."""
        return "done"

    def make_facts(_: Mapping[str, Any]) -> ToolFacts | None:
        return facts

    declared = {} if name == "own" else {"facts": make_facts}
    return Tool(act, name=name, metadata={"effect": "pure", **declared})


async def run_calls(world: World, *, turns: int, at_once: int = 10) -> list[str | None]:
    """Run turns that call each tool once, answer what is asked, and return the reasons."""
    text = f"a: {' '.join(KINDS)}"
    for begins in range(0, turns, at_once):
        count = min(at_once, turns - begins)
        accepted = [await world.say(text, to=f"talk {begins + n}") for n in range(count)]
        for one in accepted:
            await wait_until(lambda one=one: _answer(world, one))
    return await world.store.inner.read(_read_reasons)


async def _answer(world: World, accepted: AcceptResult) -> bool:
    """Answer what is asked; return whether the input has its result."""
    for asked in await world.engine.list_approvals(accepted.conversation_id):
        keep = GrantTerm.ALWAYS if asked.tool == "kept" else None
        yes = asked.tool != "reads"
        await world.engine.answer_approval(asked.id, yes=yes, by="me", keep=keep)
    return await world.engine.get_input_result(accepted.inbox_id) is not None


def _read_reasons(t: Tx) -> list[str | None]:
    return t.fetch_column("SELECT reason FROM journal")
