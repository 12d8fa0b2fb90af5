"""The plugin hooks of one turn."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from clew.agent import messages, tool_results, turn_context
from clew.core.text import is_blank
from clew.core.turn import TurnOutcome
from clew.record import replace
from clew.store.transactions import turn_queries

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from clew.agent.loop import FinalAnswer
    from clew.agent.messages import ModelResponse
    from clew.agent.models import Model
    from clew.agent.protocols import ToolRequest, ToolResult
    from clew.core.approval import Approval
    from clew.core.ids import SessionId
    from clew.core.turn import Turn
    from clew.engine.hook_dispatch import HookDispatcher
    from clew.engine.turn_tracing import TracedTurn
    from clew.plugin.turn_context import TurnContext
    from clew.store.contract import Store

START_HOOK = "on_session_start"
END_HOOK = "on_session_end"
ANSWERED_HOOK = "post_llm_call"
CALLED_HOOK = "post_tool_call"
RESULT_HOOK = "transform_tool_result"
OUTPUT_HOOK = "transform_llm_output"
ASKED_HOOK = "pre_approval_request"
DECIDED_HOOK = "post_approval_response"


class TurnHooks:
    """The facts of one turn, queued for plugins once they are stored."""

    def __init__(
        self,
        store: Store,
        facts: HookDispatcher,
        turn: Turn,
        *,
        context: TurnContext,
        trace: TracedTurn,
    ) -> None:
        """Store the parts; ``context`` is that of the turn, whatever its session is."""
        self._store, self._dispatcher = store, facts
        #: What tracers of features are told of the run.
        self.trace = trace
        self._turn, self._context, self._platform = turn, context, context.platform
        self._model = ""
        self._answer: Mapping[str, object] | None = None
        #: Calls that end with the turn: id, tool, arguments and result.
        self._closed_calls: list[tuple[str, str, Mapping[str, object], ToolResult]] = []

    async def enter_session(self, session: SessionId, model: Model) -> None:
        """Enter a session at the start of a run; emit its start if this is its first turn."""
        self._set_turn_context(session)
        self._model = model.model_name
        if not self._dispatcher.plugins.implements_hook(START_HOOK) or self._turn.steps:
            return
        if await self._store.read(turn_queries.is_first_turn, self._turn, session):
            self._emit_hook(START_HOOK, {"session_id": session, "model": self._model})

    def enter_successor(self, session: SessionId) -> None:
        """Enter the session that a compaction opened, and emit its start."""
        self._set_turn_context(session)
        self._emit_hook(START_HOOK, {"session_id": session, "model": self._model})

    def _set_turn_context(self, session: SessionId) -> None:
        self._context = replace(self._context, session=session)
        turn_context.set_turn_context(self._context)

    def record_closed_calls(
        self,
        response: ModelResponse,
        known: Mapping[str, ToolResult],
        *,
        otherwise: ToolResult,
        told: Collection[str],
    ) -> None:
        """Record the calls of a response that end with the turn, except those in ``told``."""
        self._closed_calls = [
            (
                call.call_id,
                call.tool,
                _parse_arguments(call.args),
                known.get(call.call_id, otherwise),
            )
            for call in messages.extract_tool_calls(response)
            if call.call_id not in told
        ]

    def emit_tool_result(
        self,
        session: SessionId | None,
        call_id: str,
        tool: str,
        args: Mapping[str, object],
        result: ToolResult,
        *,
        seconds: float = 0.0,
    ) -> None:
        """Emit the result of a call, whether or not it ran."""
        self._dispatcher.emit_fact(
            CALLED_HOOK,
            {
                "tool_name": tool,
                "args": args,
                "session_id": session,
                "turn_id": self._turn.id,
                "tool_call_id": call_id,
                "result": result.result,
                "status": result.status.value,
                "duration_ms": int(seconds * 1000),
            },
        )

    async def transform_result(
        self, request: ToolRequest, result: ToolResult, *, seconds: float
    ) -> ToolResult:
        """Return the result of a call that ran as plugins leave it."""
        plugins = self._dispatcher.plugins
        if not plugins.implements_hook(RESULT_HOOK):
            return result
        changed = await plugins.transform_text(
            RESULT_HOOK,
            "result",
            tool_results.get_text(result),
            tool_name=request.tool,
            args=json.loads(request.args),
            session_id=self._context.session,
            turn_id=self._turn.id,
            tool_call_id=request.call_id,
            status=result.status.value,
            duration_ms=int(seconds * 1000),
        )
        if changed is None:
            return result
        return tool_results.make_text_result(
            result.status, changed, tool=request.tool, call_id=request.call_id
        )

    async def transform_answer(self, answer: FinalAnswer) -> FinalAnswer:
        """Return an answer that is about to be stored as plugins leave it."""
        plugins = self._dispatcher.plugins
        last = answer.unstored[-1] if answer.unstored else None
        if (
            not plugins.implements_hook(OUTPUT_HOOK)
            or not isinstance(last, messages.ModelResponse)
            or is_blank(answer.text)
        ):
            return answer
        changed = await plugins.transform_text(
            OUTPUT_HOOK,
            "response_text",
            answer.text,
            session_id=self._context.session,
            turn_id=self._turn.id,
            model=last.model_name or self._model,
            platform=self._platform,
        )
        if changed is None or is_blank(changed) or changed == answer.text:
            return answer
        told = messages.replace_text(last, changed)
        return replace(answer, unstored=(*answer.unstored[:-1], told), text=changed)

    def emit_question(self, approval: Approval) -> None:
        """Emit that a person is asked about a call."""
        self._emit_hook(ASKED_HOOK, self._describe_question(approval))

    def emit_decision(self, approval: Approval) -> None:
        """Emit the answer to the question about a call."""
        decision = {"choice": approval.state.value, "decided_by": approval.answered_by or ""}
        self._emit_hook(DECIDED_HOOK, {**self._describe_question(approval), **decision})

    def _describe_question(self, approval: Approval) -> Mapping[str, object]:
        return {
            "tool_name": approval.tool,
            "args": _parse_arguments(approval.args),
            "reason": approval.why or "",
            "session_id": self._context.session,
            "turn_id": self._turn.id,
            "tool_call_id": approval.call_id,
        }

    async def record_answer(self, text: str) -> None:
        """Record the facts of an answer that is about to be stored."""
        if self._dispatcher.plugins.implements_hook(ANSWERED_HOOK):
            said = await self._store.read(turn_queries.read_user_texts, self._turn)
            self._answer = {"user_message": "\n".join(said), "assistant_response": text}

    def emit_end(self, session: SessionId | None, done: Turn) -> None:
        """Emit the outcome of the turn."""
        self.trace.record_end(done)
        for closed in self._closed_calls:
            self.emit_tool_result(session, *closed)
        facts = {"session_id": session, "turn_id": done.id, "model": done.model or ""}
        answered = done.outcome is TurnOutcome.ANSWERED
        if answered and self._answer is not None:
            self._emit_hook(ANSWERED_HOOK, {**facts, **self._answer})
        stopped = done.outcome is TurnOutcome.CANCELLED
        self._emit_hook(END_HOOK, {**facts, "completed": answered, "interrupted": stopped})

    def _emit_hook(self, hook: str, facts: Mapping[str, object]) -> None:
        self._dispatcher.emit_fact(hook, {**facts, "platform": self._platform})


def _parse_arguments(text: str) -> Mapping[str, object]:
    try:
        found: object = json.loads(text)
    except ValueError:
        return {}
    return cast("Mapping[str, object]", found) if isinstance(found, dict) else {}
