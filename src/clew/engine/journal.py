"""The tool journal over the store: intent before, result after, and what a restart makes of it."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from clew.agent import current, results
from clew.agent import messages as codec
from clew.agent.ports import NeedsApproval, ToolResult
from clew.agent.results import extract_result_text
from clew.core.approval import ApprovalState
from clew.core.effect import Effect, ResumeAction, resume_action
from clew.core.events import ToolCalled
from clew.core.journal import CallKey, CallStatus
from clew.engine.lasting import to_its_end
from clew.store.transactions import approvals, entries, files, journal

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from clew.agent.ports import ExecuteTool, ToolRequest
    from clew.core.approval import Approval
    from clew.core.ids import ConversationId, IdGenerator, SessionId
    from clew.core.journal import JournaledCall
    from clew.core.lease import Lease
    from clew.core.route import RouteKey
    from clew.core.turn import Turn
    from clew.engine.hub import Hub
    from clew.engine.lasting import Lasting
    from clew.engine.turn_facts import TurnFacts
    from clew.hooks.manager import PluginManager
    from clew.store.contract import Tx

#: A question that nobody answers is answered "no" after this time.
APPROVAL_EXPIRES = timedelta(hours=24)

_UNKNOWN = "it was begun before a restart; check before you do it again"


class Journal:
    """Implements the port ``Journal`` for one run of a turn."""

    def __init__(  # noqa: PLR0913  (wired in one place)
        self,
        store: Lasting,
        hub: Hub,
        ids: IdGenerator,
        plugins: PluginManager,
        facts: TurnFacts,
        *,
        lease: Lease,
        turn: Turn,
        route: RouteKey | None,
    ) -> None:
        self._store, self._hub, self._ids = store, hub, ids
        self._plugins, self._facts = plugins, facts
        self._lease, self._turn, self._route = lease, turn, route
        #: What a call is waited for in.
        self.wait_in: Callable[[], AbstractContextManager[None]] = nullcontext
        self._step = turn.steps
        self._asked = 0
        self._suspended = False

    def enter_step(self, step: int) -> None:
        """The calls from now on belong to this step."""
        if step != self._step:
            self._step, self._asked = step, 0

    async def read_result(self, call_id: str) -> str | None:
        return await self._store.read(_result, self._turn.conversation_id, call_id)

    @property
    def suspended(self) -> bool:
        return self._suspended

    async def call(self, request: ToolRequest, execute: ExecuteTool) -> ToolResult | None:
        with self.wait_in():
            return await self._call(request, execute)

    async def _call(self, request: ToolRequest, execute: ExecuteTool) -> ToolResult | None:
        key = CallKey(turn_id=self._turn.id, step=self._step, call_id=request.call_id)
        position, self._asked = self._asked, self._asked + 1
        # Only we can write to this journal now: what it does not hold was not begun.
        known, question = await self._store.read(_look, key)
        if known is not None and (stored := _stored(known)):
            return stored
        if question is not None:
            # What was shown is what runs.
            request = replace(request, args=question.args)
            begun = known is not None
            return await self._approved(key, position, request, execute, begun=begun)
        if known is not None:
            request = replace(request, args=known.args)
            return await self._resume(key, position, request, execute)
        request, blocked = await self._asked_plugins(key, request)
        if blocked is None and request.needs_approval:
            return await self._approved(key, position, request, execute)
        await self._intend(key, position, request)
        if blocked is not None:
            return await self._answered(key, request, blocked)
        return await self._run(key, position, request, execute, approved=False)

    async def _asked_plugins(
        self, key: CallKey, request: ToolRequest
    ) -> tuple[ToolRequest, ToolResult | None]:
        """The request as the plugins leave it, and the result if they block it."""
        if not self._plugins.implements_hook("pre_tool_call"):
            return request, None
        verdict = await self._plugins.run_pre_tool_call(
            tool_name=request.tool,
            args=json.loads(request.args),
            session_id=_session(),
            turn_id=key.turn_id,
            tool_call_id=key.call_id,
        )
        if verdict.block is not None:
            return request, results.make_text_result(CallStatus.DENIED, verdict.block)
        changed = request.args if verdict.args is None else json.dumps(verdict.args)
        approve = request.needs_approval or verdict.approve
        return replace(request, args=changed, needs_approval=approve), None

    async def _resume(
        self, key: CallKey, position: int, request: ToolRequest, execute: ExecuteTool
    ) -> ToolResult | None:
        """The intent is stored and the result is not: the process that ran it is gone."""
        match resume_action(request.effect):
            case ResumeAction.RUN:
                await self._store.write(journal.count_rerun, self._lease, key)
                return await self._run(key, position, request, execute, approved=False)
            case ResumeAction.UNKNOWN:
                unknown = results.make_text_result(CallStatus.UNKNOWN, _UNKNOWN)
                return await self._answered(key, request, unknown)
            case ResumeAction.ASK:
                return await self._approved(key, position, request, execute)

    async def _approved(
        self,
        key: CallKey,
        position: int,
        request: ToolRequest,
        execute: ExecuteTool,
        *,
        begun: bool = False,
    ) -> ToolResult | None:
        approval = await self._ask(key, request)
        if approval.state is ApprovalState.OPEN:
            self._suspended = True
            return None
        await self._intend(key, position, request)
        if approval.state is not ApprovalState.APPROVED:
            denied = results.make_text_result(CallStatus.DENIED, _why(approval))
            return await self._answered(key, request, denied)
        if begun and resume_action(request.effect) is not ResumeAction.RUN:
            unknown = results.make_text_result(CallStatus.UNKNOWN, _UNKNOWN)
            return await self._answered(key, request, unknown)
        return await self._run(key, position, request, execute, approved=True)

    async def _ask(self, key: CallKey, request: ToolRequest) -> Approval:
        return await self._store.write(
            approvals.request_approval,
            self._lease,
            key,
            approval=self._ids.new_approval_id(),
            tool=request.tool,
            args=request.args,
            route=self._route,
            expires_in=APPROVAL_EXPIRES,
        )

    async def _intend(self, key: CallKey, position: int, request: ToolRequest) -> None:
        await self._store.write(
            journal.record_intent,
            self._lease,
            key,
            position=position,
            tool=request.tool,
            args=request.args,
            effect=request.effect,
        )

    async def _run(
        self,
        key: CallKey,
        position: int,
        request: ToolRequest,
        execute: ExecuteTool,
        *,
        approved: bool,
    ) -> ToolResult | None:
        self._tell(request, None)
        begun = time.monotonic()
        try:
            result = await execute(request.args, approved)
        except NeedsApproval:
            if not approved:
                return await self._approved(key, position, request, execute)
            result = results.make_text_result(
                CallStatus.ERROR, "it asks for approval, which it was given"
            )
        settled = await self._answered(key, request, result, seconds=time.monotonic() - begun)
        self._tell(request, settled.status.value)
        return settled

    async def _answered(
        self, key: CallKey, request: ToolRequest, result: ToolResult, *, seconds: float = 0.0
    ) -> ToolResult:
        """Store the result of a call, run or not, and tell plugins of it."""
        settled = await self._settle(key, result)
        args = json.loads(request.args)
        self._facts.called(_session(), key.call_id, request.tool, args, settled, seconds=seconds)
        return settled

    async def _settle(self, key: CallKey, result: ToolResult) -> ToolResult:
        known = await to_its_end(
            lambda: self._store.bare.write(
                journal.record_result,
                self._lease,
                key,
                result.status,
                format=result.format,
                result=result.result,
                whole=result.whole,
            )
        )
        stored = _stored(known)
        assert stored is not None
        return stored

    def _tell(self, request: ToolRequest, status: str | None) -> None:
        self._hub.publish(
            self._turn.conversation_id,
            ToolCalled(
                conversation=self._turn.conversation_id,
                turn=self._turn.id,
                call_id=request.call_id,
                tool=request.tool,
                args=request.args,
                status=status,
            ),
        )


def _session() -> SessionId | None:
    where = current.get_turn_context()
    return None if where is None else where.session


def _look(t: Tx, key: CallKey) -> tuple[JournaledCall | None, Approval | None]:
    """What is stored of a call, and what a person was asked about it."""
    return journal.find_call(t, key), approvals.find_approval(t, key)


def _result(t: Tx, conversation: ConversationId, call_id: str) -> str | None:
    """The whole of a result: kept beside its entry, or in it."""
    whole = files.find_tool_result(t, conversation, call_id)
    if whole is not None:
        return whole.decode(errors="ignore")
    message = entries.find_tool_answer(t, conversation, call_id)
    return None if message is None else extract_result_text(codec.load_message(message), call_id)


def _why(approval: Approval) -> str:
    if approval.state is ApprovalState.EXPIRED:
        return "nobody answered in time"
    return approval.note or "the person said no"


def _stored(call: JournaledCall) -> ToolResult | None:
    if call.status is None:
        return None
    assert call.format is not None
    assert call.result is not None
    return ToolResult(status=call.status, format=call.format, result=call.result)


async def batch_results(
    store: Lasting, turn: Turn, step: int, *, begun: ToolResult
) -> tuple[dict[str, ToolResult], set[str]]:
    """
    Return what is known of one step's calls, by id, and those that are answered already.

    What may have had an effect and is not answered has the result ``begun``.
    """
    calls = await store.read(journal.list_step_calls, turn.id, step)
    known = {
        call.key.call_id: _stored(call) or begun
        for call in calls
        if call.status is not None or call.effect is not Effect.PURE
    }
    return known, {call.key.call_id for call in calls if call.status is not None}
