"""The tool journal over the store: intents, results, and the continuation after a restart."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from clew import wording
from clew.agent import messages as codec
from clew.agent import tool_results, turn_context
from clew.agent.protocols import CallSuspended, NeedsApproval, ToolResult
from clew.agent.tool_results import extract_result_text
from clew.config.workspaces import name_place
from clew.core.approval import ApprovalReason, ApprovalState
from clew.core.effect import Effect, ResumeAction, resume_action
from clew.core.events import ToolCalled
from clew.core.journal import CallKey, CallReason, CallStatus
from clew.core.policy_rule import Verdict
from clew.engine.call_policy import CallPolicy
from clew.engine.nested_calls import NestedCalls, is_same_call
from clew.engine.store_retry import retry_shielded
from clew.engine.workspace_taint import WorkspaceTaint
from clew.record import replace
from clew.sandbox.changed_files import read_file_clock
from clew.store.transactions import approvals, attachments, entries, journal

if TYPE_CHECKING:
    from clew.agent.protocols import ExecuteTool, ToolRequest
    from clew.core.approval import Approval
    from clew.core.ids import ConversationId, SessionId
    from clew.core.journal import JournaledCall
    from clew.core.lease import Lease
    from clew.core.turn import Turn
    from clew.engine.protocols import StepCounter, WaitPermit
    from clew.engine.services import EngineServices
    from clew.engine.store_retry import RetryingStore
    from clew.engine.turn_hooks import TurnHooks
    from clew.hooks.manager import ToolVerdict
    from clew.plugin.turn_context import TurnContext
    from clew.store.contract import Tx

_UNKNOWN_NOTE = "it was started before a restart; check its effect before you repeat it"
_BLOCKED = CallReason(text="a plugin denied it")
_ASKED_BEFORE = ApprovalReason(why="it was asked before a restart")
_INTERRUPTED = ApprovalReason(why="it was interrupted, and may have had its effect")
_CHANGED_NOTE = "it was not run: {difference}; call it again"
_OTHER_PATH_NOTE = "the script took another path than before; check what was done"


class StoreJournal:
    """The protocol ``Journal`` over the store, for one run of a turn."""

    def __init__(  # noqa: PLR0913  (wired in one place)
        self,
        store: RetryingStore,
        services: EngineServices,
        hooks: TurnHooks,
        permit: WaitPermit,
        counter: StepCounter,
        *,
        lease: Lease,
        turn: Turn,
        context: TurnContext,
    ) -> None:
        self._store, self._event_bus, self._ids = store, services.event_bus, services.ids
        self._plugins, self._hooks = services.hooks.plugins, hooks
        self._permit, self._counter = permit, counter
        self._lease, self._turn, self._route = lease, turn, context.route
        self._policy = CallPolicy(store, context, services.narrowings)
        self._taint = WorkspaceTaint(
            store,
            lease,
            conversation=turn.conversation_id,
            workspace=self._policy.workspace,
            place=name_place(context.services.settings),
        )
        self._task = context.task
        self._approval_lifetime = context.services.settings.approvals.expires
        #: The step of the newest call, and the number of its calls so far.
        self._step, self._call_count = counter.steps, 0
        self._suspended = False
        #: By the id of the outer call.
        self._nested: dict[str, NestedCalls] = {}

    async def read_result(self, call_id: str) -> str | None:
        return await self._store.read(_read_full_result, self._turn.conversation_id, call_id)

    @property
    def is_suspended(self) -> bool:
        return self._suspended

    async def execute_call(self, request: ToolRequest, execute: ExecuteTool) -> ToolResult | None:
        with self._permit.lend_while_waiting(for_turns=request.awaits_turns):
            if not request.enclosing:
                return await self._handle_call(request, execute)
            return await self._handle_nested_call(request, execute)

    async def _handle_nested_call(
        self, request: ToolRequest, execute: ExecuteTool
    ) -> ToolResult | None:
        siblings = self._nested.setdefault(request.enclosing[-1], NestedCalls())
        with siblings.count_running():
            result = await self._handle_call(request, execute)
        if result is None:
            await siblings.suspend()
        return result

    async def _handle_call(self, request: ToolRequest, execute: ExecuteTool) -> ToolResult | None:
        key = CallKey(turn_id=self._turn.id, step=self._counter.steps, call_id=request.call_id)
        position = self._next_position(key.step)
        # Only we can write to this journal now: a call that it lacks was not begun.
        known, question = await self._store.read(_read_call, key)
        before = known or question
        if request.enclosing and before is not None and not is_same_call(before, request):
            return tool_results.make_text_result(CallStatus.UNKNOWN, _OTHER_PATH_NOTE)
        if known is not None and (stored := _load_result(known)):
            return stored
        if known is not None and known.suspended:
            await self._store.write(journal.resume_suspended, self._lease, key)
            request = replace(request, args=known.args, requested=known.requested)
            return await self._run_call(
                key, position, request, execute, approved=question is not None
            )
        if question is not None:
            # The call runs with the arguments that the person saw.
            request = replace(request, args=question.args, requested=question.requested)
            begun = known is not None
            return await self._run_if_approved(
                key, position, request, execute, _ASKED_BEFORE, begun=begun
            )
        if known is not None:
            request = replace(request, args=known.args, requested=known.requested)
            return await self._resume_call(key, position, request, execute)
        return await self._begin_call(key, position, request, execute)

    async def _begin_call(
        self, key: CallKey, position: int, request: ToolRequest, execute: ExecuteTool
    ) -> ToolResult | None:
        """Decide about a call that is made for the first time."""
        request, verdict = await self._consult_plugins(key, request)
        if verdict is not None and verdict.block is not None:
            await self._store_intent(key, position, request, _BLOCKED)
            return await self._deny_call(key, request, verdict.block)
        judged = await self._policy.judge(
            request, plugin_asks=verdict is not None and verdict.approve
        )
        if judged.verdict is Verdict.ASK:
            return await self._run_if_approved(key, position, request, execute, judged.question)
        await self._store_intent(key, position, request, judged.reason)
        if judged.verdict is Verdict.DENY:
            return await self._deny_call(key, request, judged.decision.why)
        return await self._run_call(
            key, position, request, execute, approved=request.needs_approval
        )

    async def _deny_call(self, key: CallKey, request: ToolRequest, why: str) -> ToolResult:
        denied = tool_results.make_text_result(CallStatus.DENIED, why)
        return await self._record_result(key, request, denied)

    def _next_position(self, step: int) -> int:
        """Return the number of the call within its step, from 0."""
        if step != self._step:
            self._step, self._call_count = step, 0
        position, self._call_count = self._call_count, self._call_count + 1
        return position

    async def _consult_plugins(
        self, key: CallKey, request: ToolRequest
    ) -> tuple[ToolRequest, ToolVerdict | None]:
        """Return the request as the plugins leave it, and what they say about it."""
        if not self._plugins.implements_hook("pre_tool_call"):
            return request, None
        verdict = await self._plugins.run_pre_tool_call(
            tool_name=request.tool,
            args=json.loads(request.args),
            session_id=_get_session_id(),
            turn_id=key.turn_id,
            tool_call_id=key.call_id,
        )
        if verdict.args is not None:
            changed = json.dumps(verdict.args)
            request = replace(request, args=changed, requested=request.args)
        return request, verdict

    async def _resume_call(
        self, key: CallKey, position: int, request: ToolRequest, execute: ExecuteTool
    ) -> ToolResult | None:
        """Continue a call whose intent is stored without a result: its process is gone."""
        match resume_action(request.effect):
            case ResumeAction.RUN:
                return await self._run_again(key, position, request, execute)
            case ResumeAction.UNKNOWN:
                unknown = tool_results.make_text_result(CallStatus.UNKNOWN, _UNKNOWN_NOTE)
                return await self._record_result(key, request, unknown)
            case ResumeAction.ASK:
                return await self._run_if_approved(key, position, request, execute, _INTERRUPTED)

    async def _run_again(
        self, key: CallKey, position: int, request: ToolRequest, execute: ExecuteTool
    ) -> ToolResult | None:
        """Run an interrupted call again if it may still run: the settings may have changed."""
        judged = await self._policy.judge(request)
        match judged.verdict:
            case Verdict.ASK:
                return await self._run_if_approved(key, position, request, execute, judged.question)
            case Verdict.DENY:
                await self._store.write(journal.record_reason, self._lease, key, judged.reason)
                return await self._deny_call(key, request, judged.decision.why)
            case Verdict.ALLOW:
                await self._store.write(journal.count_rerun, self._lease, key)
                return await self._run_call(
                    key, position, request, execute, approved=request.needs_approval
                )

    async def _run_if_approved(
        self,
        key: CallKey,
        position: int,
        request: ToolRequest,
        execute: ExecuteTool,
        question: ApprovalReason,
        *,
        begun: bool = False,
    ) -> ToolResult | None:
        approval = await self._request_approval(key, request, question)
        if approval.state is ApprovalState.OPEN:
            self._suspended = True
            return None
        self._hooks.emit_decision(approval)
        await self._store_intent(key, position, request, describe_answer(approval))
        if approval.state is not ApprovalState.APPROVED:
            denied = tool_results.make_text_result(CallStatus.DENIED, _explain_denial(approval))
            return await self._record_result(key, request, denied)
        if begun and resume_action(request.effect) is not ResumeAction.RUN:
            unknown = tool_results.make_text_result(CallStatus.UNKNOWN, _UNKNOWN_NOTE)
            return await self._record_result(key, request, unknown)
        difference = await self._policy.find_difference(request, approval, begun=begun)
        if difference is not None:
            note = _CHANGED_NOTE.format(difference=difference)
            changed = tool_results.make_text_result(CallStatus.ERROR, note)
            return await self._record_result(key, request, changed)
        return await self._run_call(key, position, request, execute, approved=True, seen=True)

    async def _request_approval(
        self, key: CallKey, request: ToolRequest, question: ApprovalReason
    ) -> Approval:
        new = self._ids.new_approval_id()
        approval = await self._store.write(
            approvals.request_approval,
            self._lease,
            key,
            approval=new,
            tool=request.tool,
            args=request.args,
            route=self._route,
            expires_in=self._approval_lifetime,
            requested=request.requested,
            enclosing=request.enclosing,
            question=self._name_task(question),
        )
        if approval.id == new:
            self._hooks.emit_question(approval)
        return approval

    def _name_task(self, question: ApprovalReason) -> ApprovalReason:
        """Return the reason with the task that the call is for."""
        if self._task is None:
            return question
        return replace(question, why=wording.format_task_reason(question.why, self._task))

    async def _store_intent(
        self, key: CallKey, position: int, request: ToolRequest, reason: CallReason
    ) -> None:
        await self._store.write(
            journal.record_intent,
            self._lease,
            key,
            position=position,
            tool=request.tool,
            args=request.args,
            effect=request.effect,
            requested=request.requested,
            reason=reason,
        )

    async def _run_call(
        self,
        key: CallKey,
        position: int,
        request: ToolRequest,
        execute: ExecuteTool,
        *,
        approved: bool,
        seen: bool = False,
    ) -> ToolResult | None:
        """Run a call; ``seen`` by a person, who allowed this very one."""
        reach = await self._policy.find_reach(request)
        reads = await self._taint.begin_call(
            key, reach.files, untrusted=reach.untrusted, unseen=not (seen or reach.is_open)
        )
        self._publish_call(request, None)
        begun, since = time.monotonic(), read_file_clock()
        try:
            with (
                self._hooks.trace.call(request) as add_result,
                turn_context.enter_tool_call(key, self._permit.keep_while_working),
            ):
                result = await execute(request.args, approved)
                add_result(result)
        except NeedsApproval:
            if not approved:
                return await self._ask_for_call(key, position, request, execute)
            result = tool_results.make_text_result(
                CallStatus.ERROR, "it asks for approval, which it was given"
            )
        if (inner := self._nested.get(key.call_id)) is not None and inner.is_suspended:
            # The tool has caught the signal: its result was made without that of a call.
            raise CallSuspended
        seconds = time.monotonic() - begun
        result = await self._hooks.transform_result(request, result, seconds=seconds)
        foreign = reads or await self._taint.has_read(reach.files, since=since)
        settled = await self._record_result(
            key, request, result, seconds=seconds, untrusted=foreign
        )
        self._publish_call(request, settled.status.value)
        return settled

    async def _ask_for_call(
        self, key: CallKey, position: int, request: ToolRequest, execute: ExecuteTool
    ) -> ToolResult | None:
        """Decide about a call whose tool asked for approval once it ran."""
        judged = await self._policy.judge(replace(request, needs_approval=True))
        match judged.verdict:
            case Verdict.ASK:
                return await self._run_if_approved(key, position, request, execute, judged.question)
            case Verdict.DENY:
                await self._store.write(journal.record_reason, self._lease, key, judged.reason)
                return await self._deny_call(key, request, judged.decision.why)
            case Verdict.ALLOW:
                await self._store.write(journal.record_reason, self._lease, key, judged.reason)
                return await self._run_call(key, position, request, execute, approved=True)

    async def _record_result(
        self,
        key: CallKey,
        request: ToolRequest,
        result: ToolResult,
        *,
        seconds: float = 0.0,
        untrusted: bool = False,
    ) -> ToolResult:
        """Store the result of a call, run or not, and send it to plugins."""
        settled = await self._store_result(key, result, untrusted=untrusted)
        args = json.loads(request.args)
        self._hooks.emit_tool_result(
            _get_session_id(), key.call_id, request.tool, args, settled, seconds=seconds
        )
        return settled

    async def _store_result(
        self, key: CallKey, result: ToolResult, *, untrusted: bool
    ) -> ToolResult:
        known = await retry_shielded(
            lambda: self._store.once.write(
                journal.record_result,
                self._lease,
                key,
                result.status,
                format=result.format,
                result=result.result,
                whole=result.whole,
                at=read_file_clock(),
                untrusted=untrusted,
            )
        )
        stored = _load_result(known)
        assert stored is not None
        return stored

    def _publish_call(self, request: ToolRequest, status: str | None) -> None:
        self._event_bus.publish(
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


def _get_session_id() -> SessionId | None:
    where = turn_context.get_turn_context()
    return None if where is None else where.session


def _read_call(t: Tx, key: CallKey) -> tuple[JournaledCall | None, Approval | None]:
    """Return the stored call and its approval question."""
    return journal.find_call(t, key), approvals.find_approval(t, key)


def _read_full_result(t: Tx, conversation: ConversationId, call_id: str) -> str | None:
    """Return the full result, stored beside its entry or in it, without what was forgotten."""
    whole = attachments.find_tool_result(t, conversation, call_id)
    if whole is not None and not entries.is_answer_redacted(t, conversation, call_id):
        return whole.decode(errors="ignore")
    message = entries.find_tool_answer(t, conversation, call_id)
    return None if message is None else extract_result_text(codec.load_message(message), call_id)


def describe_answer(approval: Approval) -> CallReason:
    """Return the reason of a call that was asked about."""
    asked = "" if approval.why is None else f" (asked, because {approval.why})"
    who = approval.answered_by or "the person"
    text = {
        ApprovalState.APPROVED: f"{who} allowed it",
        ApprovalState.DENIED: f"{who} denied it",
    }.get(approval.state, "nobody answered in time")
    return CallReason(text=text + asked, untrusted=approval.untrusted)


def _explain_denial(approval: Approval) -> str:
    if approval.state is ApprovalState.EXPIRED:
        return "nobody answered in time"
    return wording.describe_note(approval.note) or "the person said no"


def _load_result(call: JournaledCall) -> ToolResult | None:
    if call.status is None:
        return None
    assert call.format is not None
    assert call.result is not None
    return ToolResult(status=call.status, format=call.format, result=call.result)


async def read_batch_results(
    store: RetryingStore, turn: Turn, step: int, *, begun: ToolResult
) -> tuple[dict[str, ToolResult], set[str]]:
    """
    Return the known results of one step's calls, by id, and the ids of the answered ones.

    An unanswered call that may have had an effect gets the result ``begun``.
    """
    calls = await store.read(journal.list_step_calls, turn.id, step)
    known = {
        call.key.call_id: _load_result(call) or begun
        for call in calls
        if call.status is not None or call.effect is not Effect.PURE
    }
    return known, {call.key.call_id for call in calls if call.status is not None}
