"""The decision about tool calls: rules, facts, grants and taint, over a real store."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pydantic_ai import ApprovalRequired, RunContext, Tool

from clew.agent.call_facts import make_facts
from clew.core.call_policy import UnknownFacts
from clew.core.completion import UNATTENDED_KEY
from clew.core.journal import CallStatus
from clew.core.tool_facts import PathFact, ToolFacts
from clew.plugin import get_turn_context
from clew.store.transactions import journal
from tests.deciding import FLAGS, KINDS, make_tools, run_calls
from tests.line.world import open_world

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from clew.core.inbox import AcceptResult
    from clew.core.journal import JournaledCall
    from clew.store.contract import Tx
    from tests.line.tools import Tools
    from tests.line.world import World

    Facts = Callable[[Mapping[str, Any]], object]

_RAN: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    _RAN.clear()


def tool(
    name: str, facts: ToolFacts | Facts | None = None, effect: str = "once", **metadata: object
) -> Tool[Any]:
    async def act(what: str) -> str:
        """Act."""
        _RAN[name] += 1
        return f"{name} done"

    def constant(_: Mapping[str, Any]) -> object:
        return facts

    if facts is not None:
        metadata["facts"] = constant if isinstance(facts, ToolFacts) else facts
    return Tool(act, name=name, metadata={"effect": effect, **metadata})


def dare() -> Tool[Any]:
    async def act(ctx: RunContext[Any], what: str) -> str:
        """Act, once it may."""
        if not ctx.tool_call_approved:
            raise ApprovalRequired
        _RAN["dare"] += 1
        return "dared"

    return Tool(act, name="dare")


def pay() -> Tool[Any]:
    made = tool("pay")
    made.requires_approval = True
    return made


def shell() -> Tool[Any]:
    return tool("shell", ToolFacts(command="git status -s", sandbox="host"))


OUTSIDE = ToolFacts(paths=(PathFact(path="/srv/x", inside=False),))
INSIDE = (PathFact(path="/work/x", inside=True, writes=True),)
OUTWARD = ToolFacts(outward=True)


def tools(*made: Tool[Any]) -> Callable[[Tools], list[Tool[Any]]]:
    return lambda _: list(made)


async def calls(world: World, accepted: AcceptResult) -> dict[str, JournaledCall]:
    """Return the calls of the input's turn in the journal, by tool."""
    item = await world.item(accepted)

    def read(t: Tx) -> list[JournaledCall]:
        assert item.turn_id is not None
        return [one for n in range(1, 9) for one in journal.list_step_calls(t, item.turn_id, n)]

    return {one.tool: one for one in await world.store.inner.read(read)}


async def reasons(world: World, accepted: AcceptResult) -> dict[str, str | None]:
    return {name: one.reason for name, one in (await calls(world, accepted)).items()}


async def test_each_call_is_stored_with_the_reason_why_it_ran_or_did_not(
    store_url: str, tmp_path: Path
) -> None:
    rules = [
        {"tool": "shell", "command": "git status *", "then": "allow"},
        {"tool": ["wipe"], "then": "deny"},
        {"tool": "dare", "then": "allow"},
    ]
    made = tools(shell(), tool("wipe"), dare(), pay(), tool("own"), tool("outside", OUTSIDE))
    async with open_world(
        store_url, tmp_path, tools=made, flags={"approvals.rule": rules}
    ) as world:
        accepted = await world.say("a: shell wipe dare pay own outside")
        await world.waiting(accepted.conversation_id)
        for question in await world.engine.list_approvals(accepted.conversation_id):
            yes = question.tool == "pay"
            await world.engine.answer_approval(question.id, yes=yes, by="telegram:7")
        await world.end(accepted)
        assert await reasons(world, accepted) == {
            "shell": "rule 1 allows it",
            "wipe": "rule 2 denies it",
            "dare": "rule 3 allows it",
            "pay": "telegram:7 allowed it (asked, because by default: the tool asks)",
            "own": "by default: the tool does not ask",
            "outside": "telegram:7 denied it "
            "(asked, because by default: /srv/x is outside of the workspace)",
        }
        assert set(_RAN) == {"shell", "dare", "pay", "own"}
        assert await world.check() == []


async def test_a_call_whose_facts_raised_were_none_or_not_facts_asks(
    store_url: str, tmp_path: Path
) -> None:
    def fail(args: Mapping[str, Any]) -> ToolFacts:
        return ToolFacts(size=args["missing"])

    async def none(args: Mapping[str, Any]) -> None:
        return None

    def leave(args: Mapping[str, Any]) -> ToolFacts:
        raise SystemExit(1)

    def text(args: Mapping[str, Any]) -> str:
        return "facts"

    made = tools(
        tool("fails", fail, "pure"),
        tool("none", none, "pure"),
        tool("odd", text, "pure"),
        tool("leaves", leave, "pure"),
    )
    flags = {"approvals.rule": [{"then": "allow"}]}
    async with open_world(store_url, tmp_path, tools=made, flags=flags) as world:
        accepted = await world.say("a: fails none odd leaves")
        await world.waiting(accepted.conversation_id)
        asked = await world.engine.list_approvals(accepted.conversation_id)
        assert {one.tool: one.why for one in asked} == {
            "fails": "nobody knows what it does: its facts could not be made (KeyError)",
            "none": "nobody knows what it does: it has no facts about this call",
            "odd": "nobody knows what it does: it has no facts about this call",
            "leaves": "nobody knows what it does: its facts tried to end the program",
        }
        assert not any(one.offer for one in asked)
        for one in asked:
            await world.engine.answer_approval(one.id, yes=True)
        await world.end(accepted)
        assert sum(_RAN.values()) == 4
        assert all(one.untrusted for one in (await calls(world, accepted)).values())


@pytest.mark.parametrize("blocks", [True, False])
async def test_facts_that_take_too_long_are_unknown(blocks: bool) -> None:
    never = asyncio.Event()

    def block(_: Mapping[str, Any]) -> ToolFacts:
        time.sleep(0.5)
        return ToolFacts()

    async def wait(_: Mapping[str, Any]) -> ToolFacts:
        await never.wait()
        return ToolFacts()

    function = block if blocks else wait
    made = await make_facts(function, {}, tool="slow", longest=timedelta(milliseconds=20))
    assert made == UnknownFacts(why="its facts took longer than 0.02 s")


async def test_a_preview_is_made_only_for_a_call_that_is_asked_about(tmp_path: Path) -> None:
    made: Counter[str] = Counter()

    def show(what: str, *, fails: bool = False) -> Callable[[], str]:
        def make() -> str:
            made[what] += 1
            if fails:
                raise OSError("gone")
            return f"the change of {what}"

        return make

    kinds = tools(
        tool("near", ToolFacts(paths=INSIDE, preview=show("near")), "idempotent"),
        tool("far", replace(OUTSIDE, preview=show("far"))),
        tool("lost", replace(OUTSIDE, preview=show("lost", fails=True))),
    )
    async with open_world("sqlite:///clew.db", tmp_path, tools=kinds) as world:
        accepted = await world.say("a: near far lost")
        await world.waiting(accepted.conversation_id)
        asked = await world.engine.list_approvals(accepted.conversation_id)
        assert {one.tool: one.preview for one in asked} == {
            "far": "the change of far",
            "lost": None,
        }
        assert made == {"far": 1, "lost": 1}


async def test_an_outward_call_asks_once_the_conversation_has_read_text_of_strangers(
    store_url: str, tmp_path: Path
) -> None:
    made = tools(
        tool("fetch", ToolFacts(), "pure", untrusted=True),
        tool("look", ToolFacts(), "pure"),
        tool("say_to", OUTWARD),
    )
    flags = {"approvals.rule": [{"tool": "say_to", "then": "allow"}]}
    async with open_world(store_url, tmp_path, tools=made, flags=flags) as world:
        clean = await world.say("a: say_to")
        await world.end(clean)
        assert (await reasons(world, clean))["say_to"] == "rule 1 allows it"
        await world.end(await world.say("b: fetch"))
        tainted = await world.say("c: look say_to")
        question = await world.question(tainted.conversation_id)
        assert question.tool == "say_to"
        assert question.why == (
            "it reaches outside, after the conversation has read text of strangers"
        )
        assert question.offer is None
        await world.engine.answer_approval(question.id, yes=False)
        await world.end(tainted)
        assert _RAN["say_to"] == 1
        # A branch brings the text along; another conversation has not read it.
        branch = await world.engine.sessions.branch_conversation(tainted.conversation_id)
        again = await world.say("d: say_to", to=branch)
        await world.waiting(again.conversation_id)
        other = await world.say("e: say_to", to="other")
        await world.end(other)
        assert _RAN["say_to"] == 2


async def test_a_turn_without_a_person_is_asked_about_only_where_somebody_is(
    store_url: str, tmp_path: Path
) -> None:
    async with open_world(store_url, tmp_path, tools=tools(pay())) as world:

        async def begin(text: str, to: str) -> AcceptResult:
            message = replace(
                world.engine.new_input(text), payload=json.dumps({UNATTENDED_KEY: True})
            )
            first = await world.say("x:", to=to)
            await world.end(first)
            target = first.conversation_id if to == "nobody" else world.target(to)
            return await world.engine.submit(message, target=target)

        refused = await begin("a: pay", "nobody")
        await world.end(refused)
        assert (await reasons(world, refused))["pay"] == "nobody can be asked here"
        assert (await world.shape(refused.conversation_id))[-2] == (
            "pay!not approved: nobody can be asked here"
        )
        asked = await begin("b: pay", "owner")
        question = await world.question(asked.conversation_id)
        await world.engine.answer_approval(question.id, yes=True)
        await world.end(asked)
    flags = {"approvals.unattended": "deny"}
    async with open_world(store_url, tmp_path, tools=tools(pay()), flags=flags) as world:
        message = replace(
            world.engine.new_input("c: pay"), payload=json.dumps({UNATTENDED_KEY: True})
        )
        denied = await world.engine.submit(message, target=world.target("owner"))
        await world.end(denied)
        why = "no person began this turn, and approvals.unattended is deny"
        assert (await reasons(world, denied))["pay"] == why
    assert _RAN["pay"] == 1


async def test_every_call_names_its_reason_however_it_was_decided(
    store_url: str, tmp_path: Path
) -> None:
    async with open_world(store_url, tmp_path, tools=make_tools, flags=FLAGS) as world:
        reasons = await run_calls(world, turns=4, at_once=2)
        assert len(reasons) == 4 * len(KINDS)
        begins = Counter((reason or "none").split(":")[0].split(" grt_")[0] for reason in reasons)
        assert {"rule 1 allows it", "rule 2 denies it", "by default", "grant"} < begins.keys()
        assert await world.check() == []


async def test_a_question_keeps_its_sandbox_and_workspace_until_the_call_runs(
    store_url: str, tmp_path: Path
) -> None:
    def describe(_: Mapping[str, Any]) -> ToolFacts:
        context = get_turn_context()
        assert context is not None
        return ToolFacts(command="make all", sandbox=context.sandbox_level)

    made = tools(tool("shell", describe), tool("own"))
    asks = {"approvals.rule": [{"tool": ["shell", "own"], "then": "ask"}]}
    changes = [
        {"sandbox.level": "host"},
        {"sandbox.level": "read"},
        {"sandbox.workspace": str(tmp_path / "elsewhere")},
        {},
    ]
    for n, changed in enumerate(changes):
        async with open_world(store_url, tmp_path, tools=made, flags=asks) as world:
            accepted = await world.say("a: shell own", to=f"talk {n}")
            await world.waiting(accepted.conversation_id)
        async with open_world(store_url, tmp_path, tools=made, flags={**asks, **changed}) as world:
            for question in await world.engine.list_approvals(accepted.conversation_id):
                await world.engine.answer_approval(question.id, yes=True)
            await world.end(accepted)
            ran = await calls(world, accepted)
            assert {one.status for one in ran.values()} == (
                {CallStatus.ERROR} if changed else {CallStatus.OK}
            )
            if changed == changes[0]:
                assert ran["shell"].result is not None
                assert "the sandbox level was work, and is host now; call it" in ran["shell"].result
    assert _RAN == {"shell": 1, "own": 1}


async def test_a_call_that_reaches_something_else_than_was_shown_is_not_run(
    store_url: str, tmp_path: Path
) -> None:
    reach = ["/srv/a"]

    def describe(_: Mapping[str, Any]) -> ToolFacts:
        return ToolFacts(paths=(PathFact(path=reach[0], inside=False),), size=len(_RAN))

    async with open_world(store_url, tmp_path, tools=tools(tool("get", describe))) as world:
        for path in ("/srv/a", "/srv/b"):
            reach[0] = "/srv/a"
            accepted = await world.say("a: get")
            question = await world.question(accepted.conversation_id)
            reach[0] = path
            await world.engine.answer_approval(question.id, yes=True)
            await world.end(accepted)
        assert _RAN["get"] == 1
        assert (await world.shape(accepted.conversation_id))[-2] == (
            "get!error: it was not run: it would reach something else; call it again"
        )


async def test_an_interrupted_call_runs_again_only_if_it_still_may(
    store_url: str, tmp_path: Path
) -> None:
    begun = asyncio.Event()

    def make(_: Tools) -> list[Tool[Any]]:
        async def act(what: str) -> str:
            """Act, or hang the first time."""
            _RAN["act"] += 1
            if not begun.is_set():
                begun.set()
                await asyncio.Event().wait()
            return "done"

        def describe(_: Mapping[str, Any]) -> ToolFacts:
            context = get_turn_context()
            assert context is not None
            return ToolFacts(command="make all", sandbox=context.sandbox_level)

        return [Tool(act, name="act", metadata={"effect": "idempotent", "facts": describe})]

    async with open_world(store_url, tmp_path, tools=make) as world:
        accepted = await world.say("a: act")
        await begun.wait()
    async with open_world(
        store_url, tmp_path, tools=make, flags={"sandbox.level": "host"}
    ) as world:
        question = await world.question(accepted.conversation_id)
        assert question.why == "by default: it runs outside of the sandbox"
        assert _RAN["act"] == 1
        await world.engine.answer_approval(question.id, yes=True)
        await world.end(accepted)
        assert _RAN["act"] == 2
        assert await world.check() == []
