"""The decision about a tool call: its facts, the rules of the settings, and the grants."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from clew.agent.call_facts import make_facts, make_preview
from clew.config.workspaces import find_workspace
from clew.core.approval import ApprovalReason
from clew.core.call_policy import (
    Decision,
    JudgedCall,
    JudgedTurn,
    UnknownFacts,
    Verdict,
    decide,
    runs_open,
)
from clew.core.call_reach import find_reach
from clew.core.call_terms import CallTerms, make_terms
from clew.core.journal import CallReason
from clew.core.tool_facts import ToolFacts
from clew.record import Record, replace
from clew.sandbox.shell_parser import parse_command
from clew.store.transactions import grants, workspace_writes

if TYPE_CHECKING:
    from clew.agent.protocols import ToolRequest
    from clew.core.approval import Approval
    from clew.core.call_reach import WorkspaceReach
    from clew.engine.call_narrowings import CallNarrowings
    from clew.engine.store_retry import RetryingStore
    from clew.plugin.turn_context import TurnContext

NOBODY_TO_ASK: Final = "nobody can be asked here"
_UNATTENDED_DENIED: Final = "no person began this turn, and approvals.unattended is deny"


class JudgedRequest(Record):
    """The decision about a request, and what is stored with it."""

    decision: Decision
    preview: str | None
    untrusted: bool
    terms: CallTerms

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
            terms=self.terms,
        )


class CallReach(Record):
    """Reach of a call that is about to run, and the origin of its result."""

    files: WorkspaceReach
    untrusted: bool
    #: It runs a command outside of the sandbox.
    is_open: bool


def is_untrusted(request: ToolRequest, facts: ToolFacts | UnknownFacts | None) -> bool:
    """Return whether the result of a call may hold text of strangers."""
    # An unknown fact may have any value.
    return (
        request.untrusted
        or isinstance(facts, UnknownFacts)
        or (isinstance(facts, ToolFacts) and facts.untrusted_result)
    )


class CallPolicy:
    """The policy for the calls of one turn."""

    def __init__(
        self, store: RetryingStore, context: TurnContext, narrowings: CallNarrowings
    ) -> None:
        self._store, self._context, self._narrowings = store, context, narrowings
        self._settings = context.services.settings.approvals
        self._turn = JudgedTurn(
            scope=context.scope,
            people=tuple(f"{context.platform}:{user}" for user in context.people),
            no_answer=self._find_obstacle(),
        )
        #: By call, until it runs.
        self._reaches: dict[str, CallReach] = {}

    @property
    def workspace(self) -> str:
        """Return the folder of the turn's workspace."""
        return str(find_workspace(self._context.services.settings, self._context.scope).root)

    async def find_reach(self, request: ToolRequest) -> CallReach:
        """Return what a call that is about to run reads and writes, by its facts."""
        if request.call_id not in self._reaches:
            await self._make_facts(request)
        return self._reaches.pop(request.call_id)

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
            untrusted=is_untrusted(request, facts),
            terms=self._make_terms(facts),
        )

    async def find_difference(
        self, request: ToolRequest, shown: Approval, *, begun: bool
    ) -> str | None:
        """
        Return how an approved call would differ from what the person was shown, or ``None``.

        One that has ``begun`` may have changed what it would reach; its place stays the same.
        """
        facts = await self._make_facts(request)
        terms = shown.terms and (replace(shown.terms, reach=None) if begun else shown.terms)
        if terms is not None and (difference := terms.find_difference(self._make_terms(facts))):
            return difference
        if begun or shown.preview is None:
            return None
        if await make_preview(facts, tool=request.tool) == shown.preview:
            return None
        return "what it would change is not what the person was shown"

    def _make_terms(self, facts: ToolFacts | UnknownFacts | None) -> CallTerms:
        known = facts if isinstance(facts, ToolFacts) else None
        return make_terms(known, level=self._context.sandbox_level, workspace=self.workspace)

    async def _make_facts(self, request: ToolRequest) -> ToolFacts | UnknownFacts | None:
        facts = None
        if request.facts is not None:
            facts = await make_facts(request.facts, json.loads(request.args), tool=request.tool)
        self._reaches[request.call_id] = CallReach(
            files=find_reach(facts, self.workspace),
            untrusted=is_untrusted(request, facts),
            is_open=runs_open(facts),
        )
        return facts

    async def _decide(self, call: JudgedCall) -> Decision:
        facts = call.facts
        first = decide(call, self._settings.rule, (), self._turn)
        by_taint = isinstance(facts, ToolFacts) and (facts.outward or facts.lasting)
        if first.verdict is Verdict.DENY and self._turn.no_answer is None:
            return first
        narrowings = tuple(await self._narrowings.read(self._store, self._context))
        if first.is_default and first.verdict is Verdict.ALLOW and not (by_taint or narrowings):
            # Most calls: nothing that is stored can change it.
            return first
        if isinstance(facts, ToolFacts) and facts.command is not None:
            call = replace(call, shape=parse_command(facts.command))
        granted, tainted = await self._store.read(
            grants.read_permissions, self._context.conversation, self._context.scope, call.tool
        )
        unseen: tuple[str, ...] = ()
        if runs_open(call.facts):
            unseen = await self._store.read(workspace_writes.list_unseen_paths, self.workspace)
        turn = replace(self._turn, tainted=tainted, unseen=unseen, narrowings=narrowings)
        return decide(call, self._settings.rule, granted, turn)
