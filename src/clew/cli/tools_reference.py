"""
The reference page of the built-in tools.

``python -m clew.cli.tools_reference docs/reference/tools.md`` writes it. What calls do by default
is decided as in a turn: by the facts of the tools and the policy.
"""

# Same width as the other pages.
# ruff: noqa: E501

from __future__ import annotations

import asyncio
from inspect import getdoc
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from clew.agent.call_facts import make_facts
from clew.agent.turn_context import clear_turn_context, set_turn_context
from clew.config import load_settings
from clew.core.call_policy import JudgedCall, JudgedTurn, decide
from clew.core.policy_rule import Verdict
from clew.core.scope import LOCAL
from clew.core.tool_declaration import ToolDeclaration
from clew.core.tool_facts import ToolFacts
from clew.generated_page import write_page
from clew.plugin import TurnContext
from clew.plugin.loading import load_features
from clew.record import replace
from clew.sandbox.shell_parser import parse_command

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.config import Settings
    from clew.plugin.registry import Declared

#: A home that does not exist: settings and facts read nothing of it.
_HOME: Final = Path("/nonexistent/clew")
_ELSEWHERE: Final = "/srv/notes.txt"
#: Calls of each tool, as (level of the sandbox, arguments).
EXAMPLES: Final[Mapping[str, tuple[tuple[str, Mapping[str, Any]], ...]]] = {
    "read_file": (
        ("work", {"path": "notes.txt"}),
        ("work", {"path": "downloads/letter.txt"}),
        ("work", {"path": _ELSEWHERE}),
    ),
    "list_files": (("work", {}), ("work", {"path": "/srv"})),
    "search_files": (
        ("work", {"pattern": "milk"}),
        ("work", {"pattern": "milk", "path": "/srv"}),
    ),
    "send_file": (
        ("work", {"path": "chart.png"}),
        ("work", {"path": "att_01a2302c7bd489c5e4c339b674"}),
        ("work", {"path": _ELSEWHERE}),
    ),
    "write_file": (
        ("work", {"path": "notes.txt", "content": "milk"}),
        ("work", {"path": _ELSEWHERE, "content": "milk"}),
    ),
    "edit_file": (
        ("work", {"path": "notes.txt", "old": "milk", "new": "bread"}),
        ("work", {"path": _ELSEWHERE, "old": "milk", "new": "bread"}),
    ),
    "shell": (("work", {"command": "ls"}), ("host", {"command": "ls"})),
    "run_python": (("work", {"code": "print(1)"}), ("host", {"code": "print(1)"})),
    "process": (
        ("work", {"action": "stop"}),
        ("work", {"action": "input", "text": "yes\n"}),
        ("host", {"action": "input", "text": "yes\n"}),
        ("host", {"action": "read"}),
    ),
    "web_fetch": (("work", {"url": "https://example.org/"}),),
    "web_search": (("work", {"query": "milk"}),),
    "schedule": (
        ("work", {"task": "water the garden", "at": "2030-01-01T08:00"}),
        ("work", {"task": "tell me", "every": "1h", "kind": "command", "command": "df -h /"}),
        ("host", {"task": "tell me", "every": "1h", "kind": "command", "command": "df -h /"}),
    ),
    "delegate": (("work", {"task": "compare the offers in offers/"}),),
    "agents": (("work", {}), ("work", {"action": "stop", "task": "cnv_0123"})),
    "goal": (("work", {"state": "done", "reason": "the list is complete"}),),
    "remember": (("work", {"fact": "Ann lives in Oslo."}),),
    "recall": (("work", {"query": "Oslo"}),),
    "forget": (("work", {"number": 3}),),
    "load_skill": (("work", {"name": "pdf"}),),
    "mcp_find": (("work", {"query": "issues"}),),
    "mcp_call": (("work", {"server": "github", "tool": "create_issue"}),),
    "mcp_read": (("work", {"server": "notes", "uri": "note://1"}),),
}

#: The server of an example.
_ENVIRON: Final = {"CLEW_MCP__GITHUB__URL": "https://example.org/mcp"}

REFERENCE_HEADER: Final = """\
# Tools

<!-- Made by `python -m clew.cli.tools_reference docs/reference/tools.md`: do not edit. -->

The tools that come with Clew. `clew tools` lists those of an installation, also of plugins and of your own agent.

The [effect](../how-to/use-your-own-agent.md#declare-the-effect-of-each-tool) says what happens to a call during which the process died.

| tool | what it does | effect | results hold text of strangers | feature |
|---|---|---|---|---|
"""
_CALLS_HEADER: Final = """
## Which calls ask

Decided for example calls, without [rules](../how-to/approvals.md) and grants: first in a conversation that has read no text of
strangers, then in one that has. *Strangers* says that the result counts as such text. The levels `read` and `box` of the sandbox are decided like `work`.

| call | sandbox | by default | after text of strangers | strangers |
|---|---|---|---|---|
"""


def render_reference() -> str:
    """Return the reference page of all built-in tools."""
    features = load_features(folder=_HOME)
    settings = load_settings(home=_HOME, flags={}, environ=_ENVIRON, catalog=features.catalog)
    features.bind_settings(settings)
    declared = features.get(ToolDeclaration)
    rows = "".join(map(_render_tool, declared))
    calls = [
        asyncio.run(_render_call(each.value, level, arguments, settings))
        for each in declared
        for level, arguments in EXAMPLES[each.value.name]
    ]
    return f"{REFERENCE_HEADER}{rows}{_CALLS_HEADER}{''.join(calls)}"


def _render_tool(declared: Declared[ToolDeclaration]) -> str:
    tool = declared.value
    summary = " ".join((getdoc(tool.function) or "").split("\n\n", maxsplit=1)[0].split())
    strangers = "always" if tool.untrusted else "depends on the call"
    cells = (f"`{tool.name}`", summary, f"`{tool.effect.value}`", strangers, declared.owner)
    return f"| {' | '.join(cells).replace('``', '`')} |\n"


async def _render_call(
    tool: ToolDeclaration, level: str, arguments: Mapping[str, Any], settings: Settings
) -> str:
    assert tool.facts is not None, f"{tool.name} always runs: the page has no row for that"
    set_turn_context(_make_context(settings, level))
    try:
        facts = await make_facts(tool.facts, arguments, tool=tool.name)
    finally:
        clear_turn_context()
    assert isinstance(facts, ToolFacts), f"{tool.name}: {facts}"
    call = JudgedCall(
        tool=tool.name,
        effect=tool.effect,
        facts=facts,
        shape=None if facts.command is None else parse_command(facts.command),
        untrusted=tool.untrusted,
    )
    turn = JudgedTurn(scope=LOCAL)
    first, later = (_describe(call, one) for one in (turn, replace(turn, tainted=True)))
    verdicts = (first, "the same" if later == first else later)
    shown = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    strangers = "yes" if tool.untrusted or facts.untrusted_result else ""
    sandbox = f"`{facts.sandbox}`" if facts.sandbox else ""
    return f"| `{tool.name}({shown})` | {sandbox} | {' | '.join(verdicts)} | {strangers} |\n"


def _describe(call: JudgedCall, turn: JudgedTurn) -> str:
    decision = decide(call, (), (), turn)
    verb = {Verdict.ALLOW: "runs", Verdict.ASK: "asks", Verdict.DENY: "is refused"}
    return f"{verb[decision.verdict]}: {decision.why.removeprefix('by default: ')}"


def _make_context(settings: Settings, level: str) -> TurnContext:
    services: Any = SimpleNamespace(settings=settings)
    ids: Any = "example"
    return TurnContext(
        conversation=ids,
        session=ids,
        turn=ids,
        route=None,
        scope=LOCAL,
        sandbox_level=level,
        services=services,
    )


def main() -> None:
    """Write the page to the named file, else print it."""
    write_page(render_reference())


if __name__ == "__main__":
    main()
