"""The hooks about requests to the model, and about tasks of other agents."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from clew.core.payload import as_object
from clew.features.hermes import facts
from clew.features.hermes.findings import log_findings
from clew.features.hermes.hooks import run_callbacks

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from clew.core.ids import TurnId
    from clew.core.traceparent import TraceParent
    from clew.features.hermes.state import HostState
    from clew.plugin.tracing import TracedCall, TracedRequest, TracedRun

#: The tool that gives another agent a task.
_DELEGATE: Final = "delegate"
#: Arguments of the hooks of which Clew does not know the values.
_UNKNOWN_REQUEST: Final[dict[str, Any]] = {
    "user_message": "",
    "conversation_history": [],
    "request_messages": [],
    "message_count": 0,
    "tool_count": 0,
    "approx_input_tokens": 0,
    "request_char_count": 0,
    "max_tokens": None,
    "middleware_trace": [],
    "request": None,
}
_UNKNOWN_ANSWER: Final = {
    "message_count": 0,
    "response": None,
    "assistant_message": None,
    "assistant_tool_call_count": 0,
}


class HermesTracer:
    """The tracer of the plugins: their callbacks run in their threads, and delay nothing."""

    def __init__(self, state: HostState) -> None:
        self._state = state

    def name_trace(self, turn: TurnId, parent: TraceParent | None) -> str | None:
        """Return ``None``: plugins name no trace."""
        return None

    @contextmanager
    def trace_run(self, run: TracedRun) -> Generator[HermesTrace]:
        """Return the trace of a turn's run."""
        if self._state.loop is None:
            # An engine without services: a command that runs one turn.
            self._state.services, self._state.loop = run.context.services, _get_loop()
            log_findings(self._state)
        yield HermesTrace(self._state, run)

    def close(self) -> None:
        """Do nothing: plugins end with the process."""


def _get_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


class HermesTrace:
    """The trace of one run of a turn."""

    def __init__(self, state: HostState, run: TracedRun) -> None:
        self._state, self._run = state, run
        self._requests = 0

    @contextmanager
    def trace_request(self, request: TracedRequest) -> Generator[None]:
        """Report a request to the model, and its answer or error."""
        self._requests += 1
        known, started = self._describe(request), time.time()
        self._post("pre_api_request", {**_UNKNOWN_REQUEST, **known, "started_at": started})
        try:
            yield
        except Exception as error:
            self._post("api_request_error", {**known, **_describe_failure(error, started)})
            raise
        ended = {**known, **_UNKNOWN_ANSWER, **_describe_answer(request, started)}
        self._post("post_api_request", ended)

    @contextmanager
    def trace_call(self, call: TracedCall) -> Generator[None]:
        """Report a task that another agent is given, and its end."""
        if call.tool != _DELEGATE:
            yield
            return
        given, started = _read_object(call.args), time.time()
        parent = {
            "parent_session_id": self._run.context.session,
            "parent_turn_id": self._run.turn.id,
            "child_session_id": "",
            "child_role": str(given.get("agent") or ""),
        }
        ids = {"parent_subagent_id": None, "child_subagent_id": call.call_id}
        self._post("subagent_start", {**parent, **ids, "child_goal": str(given.get("task", ""))})
        yield
        status = "" if call.status is None else call.status.value
        ended = {"child_summary": call.result, "child_status": status}
        self._post(
            "subagent_stop",
            {**parent, **ended, "duration_ms": int((time.time() - started) * 1000)},
        )

    def _describe(self, request: TracedRequest) -> dict[str, Any]:
        context = self._run.context
        provider, model = facts.split_model(request.model)
        return {
            **facts.make_ids(context.session, self._run.turn.id),
            "api_request_id": f"{self._run.turn.id}-{self._requests}",
            "platform": context.platform,
            "model": model,
            "provider": provider,
            "base_url": context.services.settings.model.base_url or "",
            "api_mode": provider,
            "api_call_count": request.step,
        }

    def _post(self, hook: str, arguments: Mapping[str, Any]) -> None:
        for plugin in self._state.plugins:
            if callbacks := plugin.hooks.get(hook):
                plugin.worker.post(
                    lambda plugin=plugin, callbacks=callbacks: run_callbacks(
                        plugin, callbacks, arguments
                    )
                )


def _describe_answer(request: TracedRequest, started: float) -> dict[str, Any]:
    ended = time.time()
    read, written = request.input_tokens, request.output_tokens
    return {
        "started_at": started,
        "ended_at": ended,
        "api_duration": ended - started,
        "finish_reason": request.finish_reason or "",
        "response_model": request.response_model or "",
        "assistant_content_chars": len(request.text),
        "usage": {
            "input_tokens": read,
            "prompt_tokens": read,
            "output_tokens": written,
            "completion_tokens": written,
            "total_tokens": read + written,
            "cache_read_tokens": request.cached_tokens,
        },
    }


def _describe_failure(error: Exception, started: float) -> dict[str, Any]:
    ended = time.time()
    return {
        "started_at": started,
        "ended_at": ended,
        "api_duration": ended - started,
        "status_code": getattr(error, "status_code", None),
        "retry_count": 0,
        "max_retries": 0,
        "retryable": False,
        "reason": type(error).__name__,
        "error": str(error),
        "request": None,
    }


def _read_object(text: str) -> Mapping[str, Any]:
    try:
        return as_object(json.loads(text))
    except ValueError:
        return {}
