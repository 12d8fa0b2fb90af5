"""The decision about a tool call: its facts, the rules of the settings, and the grants."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from clew.agent.call_facts import make_facts, make_preview
from clew.core.approval import ApprovalReason
from clew.core.call_policy import Decision, JudgedCall, JudgedTurn, UnknownFacts, Verdict, decide
from clew.core.journal import CallReason
from clew.core.tool_facts import ToolFacts
from clew.sandbox.shell_parser import parse_command
from clew.store.transactions import grants

if TYPE_CHECKING:
    from clew.agent.protocols import ToolRequest
    from clew.engine.store_retry import RetryingStore
    from clew.plugin.turn_context import TurnContext

NOBODY_TO_ASK: Final = "nobody can be asked here"
_UNATTENDED_DENIED: Final = "no person began this turn, and approvals.unattended is deny"


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgedRequest:
    """The decision about a request, and what is stored with it."""

    decision: Decision
    preview: str | None
    untrusted: bool

    @property
    def verdict(self) -> Verdict:
        return self.decision.verdict

    @property
    def reason(self) -> CallReason:
        return CallReason(
            text=self.decision.why, grant=self.decision.grant, untrusted=self.untrusted
        )

    @property
    def question(self) -> ApprovalReason:
        return ApprovalReason(
            why=self.decision.why,
            offer=self.decision.offer,
            preview=self.preview,
            untrusted=self.untrusted,
        )


class CallPolicy:
    """The policy for the calls of one turn."""

    def __init__(self, store: RetryingStore, context: TurnContext) -> None:
        self._store, self._context = store, context
        self._settings = context.services.settings.approvals
        self._turn = JudgedTurn(
            scope=context.scope,
            people=tuple(f"{context.platform}:{user}" for user in context.people),
            no_answer=self._find_obstacle(),
        )

    def _find_obstacle(self) -> str | None:
        """Return why nobody can be asked in this turn."""
        if self._context.attended:
            return None
        if self._settings.unattended == "deny":
            return _UNATTENDED_DENIED
        return NOBODY_TO_ASK if self._context.route is None else None

    async def judge(self, request: ToolRequest, *, plugin_asks: bool = False) -> JudgedRequest:
        """Decide about a call that is about to run."""
        facts = await self._make_facts(request)
        call = JudgedCall(
            tool=request.tool,
            effect=request.effect,
            facts=facts,
            asks=request.needs_approval,
            plugin_asks=plugin_asks,
            untrusted=request.untrusted,
        )
        decision = await self._decide(call)
        asks = decision.verdict is Verdict.ASK
        return JudgedRequest(
            decision=decision,
            preview=await make_preview(facts, tool=request.tool) if asks else None,
            # An unknown fact may have any value.
            untrusted=request.untrusted
            or isinstance(facts, UnknownFacts)
            or (isinstance(facts, ToolFacts) and facts.untrusted_result),
        )

    async def shows_as_before(self, request: ToolRequest, shown: str | None) -> bool:
        """Return whether the call would still do what was shown when it was asked about."""
        if shown is None:
            return True
        return await make_preview(await self._make_facts(request), tool=request.tool) == shown

    async def _make_facts(self, request: ToolRequest) -> ToolFacts | UnknownFacts | None:
        if request.facts is None:
            return None
        return await make_facts(request.facts, json.loads(request.args), tool=request.tool)

    async def _decide(self, call: JudgedCall) -> Decision:
        facts = call.facts
        first = decide(call, self._settings.rule, (), self._turn)
        outward = isinstance(facts, ToolFacts) and facts.outward
        if first.verdict is Verdict.DENY and self._turn.no_answer is None:
            return first
        if first.is_default and first.verdict is Verdict.ALLOW and not outward:
            # Most calls: nothing that is stored can change it.
            return first
        if isinstance(facts, ToolFacts) and facts.command is not None:
            call = replace(call, shape=parse_command(facts.command))
        granted, tainted = await self._store.read(
            grants.read_permissions, self._context.conversation, self._context.scope, call.tool
        )
        return decide(call, self._settings.rule, granted, replace(self._turn, tainted=tainted))
