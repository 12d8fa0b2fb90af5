"""
Loop over steps, each one model request and its tool calls, until there is an answer.

Fresh, resumed and compacted turns run the same code: each run starts from the stored
context and does the next thing that it asks for. Only stored data is sent and acted on.
"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import structlog
from pydantic_ai import Agent, UsageLimits
from pydantic_ai.exceptions import ModelAPIError, UnexpectedModelBehavior
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_graph import End

from clew.agent.declared_tools import get_call_timeout
from clew.agent.executor import DaemonThreadExecutor
from clew.agent.journaled_toolset import JournalCapability
from clew.agent.limits import CodeLimits, RequestTimeouts
from clew.agent.loop_detection import MAX_REPEATS, find_repeated_calls
from clew.agent.messages import extract_call_ids, extract_text, is_placeholder, mark_as_placeholder
from clew.agent.models import get_qualified_name
from clew.agent.neighbours import join_neighbours
from clew.agent.protocols import RequestInfo
from clew.agent.provider_errors import IncompleteResponse, ResponseLimitExceeded
from clew.agent.run_tasks import RunTaskTracker
from clew.agent.session_prefix import PrefixCapability, render_nothing
from clew.agent.tolerant.thinking import find_lone_close
from clew.agent.tool_pairing import pair_calls_with_results
from clew.core.events import DeltaKind
from clew.core.text import is_blank
from clew.core.turn import OUTPUT_KEY
from clew.errors import ClewError
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from pydantic_ai.agent import AbstractAgent
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import Model
    from pydantic_ai.run import AgentRun
    from pydantic_ai.toolsets import AbstractToolset

    from clew.agent.protocols import Journal, LoopContext, TurnLog
    from clew.agent.session_prefix import RenderInstructions

#: Default limit of a provider's silence.
PROVIDER_TIMEOUT = timedelta(seconds=120)
#: Default time limit of one streamed response: some never end by themselves.
MAX_RESPONSE_TIME = timedelta(minutes=30)
#: Characters of one response, above the output limit of any model.
MAX_RESPONSE_CHARS = 2_000_000
#: Default time limit of a tool call.
MAX_CALL_TIME = timedelta(minutes=10)
_PROVIDERS_WITH_FINISH_REASON = frozenset({"openai", "anthropic"})
log = structlog.get_logger(__name__)

_BEFORE_REQUEST = "before the model was asked"
_INCOMPLETE_TEXT = "the provider's reply ended in the middle"
_LIMIT_EXCEEDED_TEXT = "the provider's reply did not come to an end"
# Steps are counted with the turn, which may have several runs.
_USAGE_LIMITS = UsageLimits(request_limit=None)
_TOOL_EXECUTOR = DaemonThreadExecutor()


class FinalAnswer(Record):
    """The turn's answer: ``unstored`` is still to be stored, ``text`` is what people see."""

    unstored: tuple[ModelMessage, ...]
    text: str
    #: The text is the result of an output tool, not of a response.
    is_tool_output: bool
    #: The model reached its output limit.
    is_truncated: bool


class AwaitingApproval(Record):
    """Turn that waits for approval; everything that could run has run and is stored."""


class StepLimitReached(Record):
    """Turn that has used up its model requests."""

    steps: int


class RepeatedCalls(Record):
    """Model that repeats the same calls and gets the same results."""

    tools: str
    times: int


LoopResult = FinalAnswer | AwaitingApproval | StepLimitReached | RepeatedCalls


class AgentLoop:
    """Runner of an agent's turns; keeps no state between runs."""

    def __init__(  # noqa: PLR0913  (settings, each with a default)
        self,
        agent: AbstractAgent[Any, Any],
        *,
        max_steps: int,
        silence: timedelta = PROVIDER_TIMEOUT,
        longest_response: timedelta = MAX_RESPONSE_TIME,
        longest_call: timedelta = MAX_CALL_TIME,
        code: CodeLimits = CodeLimits(),  # noqa: B008  (frozen)
        toolsets: Sequence[AbstractToolset[Any]] = (),
        capabilities: Sequence[AbstractCapability[Any]] = (),
        render: RenderInstructions = render_nothing,
    ) -> None:
        self.agent = agent
        #: Renders the instructions of features, when a session opens.
        self.render = render
        #: Toolsets beside those of the agent.
        self.toolsets = toolsets
        #: Capabilities beside those of the agent.
        self.capabilities = capabilities
        #: Model requests that one turn may make.
        self.max_steps = max_steps
        #: Limit of a provider's silence, in which it sends no usable data.
        self.silence = silence
        #: Time limit of one streamed response.
        self.longest_response = longest_response
        #: Time limit of a tool call.
        self.longest_call = longest_call
        #: Time limits of toolsets and the agent's own functions.
        self.code_limits = code

    async def run(
        self, log: TurnLog, journal: Journal, model: Model, *, stream: bool
    ) -> LoopResult:
        """
        Continue a turn from the stored context until it has an answer or must wait.

        Errors of model and provider are raised as Pydantic AI raises them. Nothing stored
        is lost, and running again from the store is always safe; so is cancelling.
        """
        context = await log.read_context()
        beside, clock = RunTaskTracker(), RequestTimeouts(self.code_limits)
        prefix = PrefixCapability(log, self.render, context.prefix)
        tools = JournalCapability(
            journal,
            self.longest_call,
            context.retries,
            self.code_limits.toolset,
            freeze=prefix.freeze_toolset,
            allowed=context.tools,
        )
        async with AsyncExitStack() as stack:
            stack.push_async_callback(beside.cancel_remaining)
            stack.enter_context(self.agent.using_thread_executor(_TOOL_EXECUTOR))
            if (stored := prefix.overriding_parts) is not None:
                # Not rendered again: the stored ones are sent.
                stack.enter_context(self.agent.override(instructions=stored))
            async with clock.limit_code(
                "before the run began", self.code_limits.preparation_seconds
            ):
                run = await stack.enter_async_context(
                    self.agent.iter(
                        message_history=_trim_placeholder_answers(context.messages),
                        model=model,
                        usage_limits=_USAGE_LIMITS,
                        toolsets=self.toolsets,
                        capabilities=[*self.capabilities, tools, beside, clock, prefix],
                    )
                )
            run.ctx.state.output_retries_used = context.retries.get(OUTPUT_KEY, 0)
            runner = _StepRunner(
                self, run, log, journal, context, clock, prefix, model=model, stream=stream
            )
            await stack.enter_async_context(runner.record_lost_usage())
            return await runner.run_steps()


class _StepRunner:
    """Execution of one run of an agent's graph, node by node."""

    def __init__(  # noqa: PLR0913  (made in one place)
        self,
        loop: AgentLoop,
        run: AgentRun[Any, Any],
        log: TurnLog,
        journal: Journal,
        context: LoopContext,
        clock: RequestTimeouts,
        prefix: PrefixCapability,
        *,
        model: Model,
        stream: bool,
    ) -> None:
        self._run, self._log, self._journal = run, log, journal
        self._model, self._stream, self._timeouts = model, stream, clock
        self._prefix = prefix
        self._call_timeout = loop.longest_call
        self._steps_left = loop.max_steps - context.steps
        self._silence = loop.silence.total_seconds()
        self._max_response_seconds = loop.longest_response.total_seconds()
        self._steps_used = context.steps
        self._known_call_ids = {
            call for message in context.messages for call in extract_call_ids(message)
        }
        # The first node handles the end of the context, which is stored already.
        self._is_stored = True
        self._answer: FinalAnswer | None = None
        # Characters of text emitted for the current response.
        self._emitted_chars = 0
        #: A received response that is not stored: its cost counts even if it never is.
        self._unstored_response: ModelResponse | None = None

    @asynccontextmanager
    async def record_lost_usage(self) -> AsyncGenerator[None]:
        """Record the cost of a response that an error in the block keeps from being stored."""
        try:
            yield
        except ClewError:
            raise
        except Exception:
            if self._unstored_response is not None and self._unstored_response.usage.has_values():
                await self._log.store_usage(self._unstored_response)
            raise

    async def run_steps(self) -> LoopResult:
        """Run the nodes of the graph until there is a result."""
        first: Any = self._run.next_node
        async with self._timeouts.limit_code(
            _BEFORE_REQUEST, self._timeouts.limits.preparation_seconds
        ):
            node: Any = await self._run.next(first)
        while True:
            if Agent.is_model_request_node(node):
                if self._steps_left <= 0:
                    return StepLimitReached(steps=self._steps_used)
                if (
                    tools := find_repeated_calls([*self._run.all_messages(), node.request])
                ) is not None:
                    return RepeatedCalls(tools=tools, times=MAX_REPEATS)
                node = await self._run_model_request(node)
            elif Agent.is_call_tools_node(node):
                node = await self._run_tool_calls(node)
                if self._journal.is_suspended:
                    return AwaitingApproval()
            else:
                assert isinstance(node, End)
                assert self._answer is not None
                return self._answer

    async def _run_model_request(self, node: Any) -> Any:
        if not self._is_stored:
            await self._log.store_request(node.request, self._count_retries())
        await self._join_steering_messages(node)
        if (smaller := await self._log.compact_if_needed(self._model)) is not None:
            self._replace_history(node, smaller.messages)
            self._prefix.continue_with(smaller.prefix)
            # A summary takes time: messages that came meanwhile join now, not a step later.
            await self._join_steering_messages(node)
        asked = RequestInfo(model=get_qualified_name(self._model), stream=self._stream)
        try:
            with self._log.waiting_for_model(asked) as wait:
                following = await self._receive_response(node)
                if Agent.is_call_tools_node(following):
                    wait.response = following.model_response
        finally:
            self._log.record_request(asked)
        self._steps_left -= 1
        self._steps_used += 1
        self._is_stored = False
        return following

    async def _join_steering_messages(self, node: Any) -> None:
        """Add the steering messages to the pending request."""
        for steered in await self._log.take_steering_messages():
            node.request.parts = [*node.request.parts, *steered.parts]

    def _count_retries(self) -> dict[str, int]:
        """Return the retries including the step just ended, as the library will count them."""
        tools = self._run.ctx.deps.tool_manager
        before = {} if tools.ctx is None else tools.ctx.retries
        counts = {name: n for name, n in before.items() if name not in tools.succeeded_tools}
        counts |= {name: before.get(name, 0) + 1 for name in tools.failed_tools}
        counts[OUTPUT_KEY] = self._run.ctx.state.output_retries_used
        return {name: count for name, count in counts.items() if count}

    def _replace_history(self, node: Any, messages: Sequence[ModelMessage]) -> None:
        """Continue with a compacted context, whose last request is the pending one."""
        history = pair_calls_with_results(messages)
        requests: list[ModelRequest] = []
        while history and isinstance(last := history[-1], ModelRequest):
            requests.append(last)
            history.pop()
        history = join_neighbours(history)
        pending: list[Any] = [part for one in reversed(requests) for part in one.parts]
        self._run.ctx.state.message_history[:] = history
        node.request.parts = pending

    async def _receive_response(self, node: Any) -> Any:
        """Send the request and receive the response, unless the provider falls silent."""
        self._emitted_chars = 0
        end = asyncio.get_running_loop().time() + self._max_response_seconds
        try:
            async with self._timeouts.limit_request(self._silence) as deadline:
                if self._stream:
                    await self._stream_response(node, deadline, end)
                following = await self._run.next(node)
        except TimeoutError as error:
            if asyncio.get_running_loop().time() < end:
                raise
            raise ResponseLimitExceeded(_LIMIT_EXCEEDED_TEXT) from error
        except (UnexpectedModelBehavior, ModelAPIError) as error:
            if self._emitted_chars and is_unexplained(error):
                raise IncompleteResponse(_INCOMPLETE_TEXT) from error
            raise
        if Agent.is_call_tools_node(following):
            self._clean_response(following.model_response)
        return following

    def _clean_response(self, response: ModelResponse) -> None:
        self._unstored_response = response
        raise_if_incomplete(response)
        if separate_thinking(response) and self._emitted_chars:
            self._log.retract_deltas("the beginning was thinking")
            self._emitted_chars = 0
            self._emit_text(extract_text(response))
        strip_blank_parts(response)
        if all(isinstance(part, ThinkingPart) for part in response.parts):
            log.warning(
                "model_said_nothing",
                response=response.provider_response_id,
                model=response.model_name,
                finish_reason=response.finish_reason,
                input_tokens=response.usage.input_tokens,
                output_tokens=response.usage.output_tokens,
            )
            if self._emitted_chars:
                self._log.retract_deltas("the reply was blank")

    async def _stream_response(self, node: Any, deadline: asyncio.Timeout, end: float) -> None:
        loop = asyncio.get_running_loop()
        async with node.stream(self._run.ctx) as events:
            try:
                async for event in events:
                    deadline.reschedule(min(loop.time() + self._silence, end))
                    self._emit_event(event)
            except Exception:
                self._unstored_response = events.response
                raise

    def _emit_event(self, event: object) -> None:
        match event:
            case (
                PartStartEvent(part=TextPart(content=text))
                | PartDeltaEvent(delta=TextPartDelta(content_delta=text))
            ) if text:
                self._emit_text(text)
            case (
                PartStartEvent(part=ThinkingPart(content=text))
                | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str() as text))
            ) if text:
                self._log.emit_delta(DeltaKind.THINKING, text)
            case _:
                pass

    def _emit_text(self, text: str) -> None:
        self._emitted_chars += len(text)
        if self._emitted_chars > MAX_RESPONSE_CHARS:
            raise ResponseLimitExceeded(_LIMIT_EXCEEDED_TEXT)
        if text:
            self._log.emit_delta(DeltaKind.TEXT, text)

    async def _run_tool_calls(self, node: Any) -> Any:
        response: ModelResponse = node.model_response
        fresh = not self._is_stored
        if fresh:
            self._known_call_ids |= make_call_ids_unique(response, self._known_call_ids)
        if fresh and extract_call_ids(response):
            await self._store_response(response)
            fresh = False
        # Each call has its own limit; some run one after another.
        limit = self._sum_call_timeouts(response) + self._timeouts.limits.preparation_seconds
        async with self._timeouts.limit_code("after the model had answered", limit):
            following = await self._run.next(node)
        if isinstance(following, End):
            self._answer = self._make_final_answer(response, fresh=fresh)
        elif fresh:
            # The next request tells the model its mistake, so both belong to the context.
            if all(isinstance(part, ThinkingPart) for part in response.parts):
                mark_as_placeholder(response, "the reply was empty")
            await self._store_response(response)
        self._is_stored = False
        return following

    def _sum_call_timeouts(self, response: ModelResponse) -> float:
        tools = self._run.ctx.deps.tool_manager.tools or {}
        limits = [
            get_call_timeout(tools[call.tool_name].tool_def, self._call_timeout)
            if call.tool_name in tools
            else self._call_timeout
            for call in response.tool_calls
        ] or [self._call_timeout]
        return sum(limit.total_seconds() for limit in limits)

    async def _store_response(self, response: ModelResponse) -> None:
        await self._log.store_response(response)
        self._unstored_response = None

    def _make_final_answer(self, response: ModelResponse, *, fresh: bool) -> FinalAnswer:
        unstored: list[ModelMessage] = [response] if fresh else []
        last = self._run.all_messages()[-1]
        if isinstance(last, ModelRequest) and last.parts:
            # An output tool ended the run: its call also has a result.
            unstored.append(last)
        said = extract_text(response)
        return FinalAnswer(
            unstored=tuple(unstored),
            text=said or self._format_output(),
            is_tool_output=is_blank(said),
            is_truncated=response.finish_reason == "length",
        )

    def _format_output(self) -> str:
        result = self._run.result
        return "" if result is None or result.output is None else str(result.output)


def _trim_placeholder_answers(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Return the messages up to the pending one, without placeholder answers at the end."""
    history = pair_calls_with_results(messages)
    while history and is_placeholder(history[-1]):
        history.pop()
    return join_neighbours(history)


def is_unexplained(error: UnexpectedModelBehavior | ModelAPIError) -> bool:
    """Return whether the library only reports an unusable reply, without details."""
    if isinstance(error, ModelAPIError):
        return type(error) is ModelAPIError and not error.in_stream
    return type(error) is UnexpectedModelBehavior


def raise_if_incomplete(response: ModelResponse) -> None:
    """
    Raise an error if a response stopped before its end.

    :raises IncompleteResponse: also without the finish reason that a provider always sends
    """
    ends = response.provider_name in _PROVIDERS_WITH_FINISH_REASON
    if response.state == "incomplete" or (ends and response.finish_reason is None):
        raise IncompleteResponse(_INCOMPLETE_TEXT)


def separate_thinking(response: ModelResponse) -> bool:
    """
    Move thinking that only a closing tag ends out of the text, in place; return if any was.

    While such a text streams, it cannot be recognised.
    """
    parts: list[Any] = []
    for part in response.parts:
        lone = find_lone_close(part.content) if isinstance(part, TextPart) else None
        if lone is None or not isinstance(part, TextPart):
            parts.append(part)
            continue
        thought = ThinkingPart(part.content[: lone.start()], id="content")
        thought.provider_name = response.provider_name
        rest = replace(part, content=part.content[lone.end() :].lstrip())
        parts += [thought, rest] if rest.content else [thought]
    changed = len(parts) != len(response.parts) or any(
        new is not old for new, old in zip(parts, response.parts, strict=False)
    )
    response.parts = parts
    return changed


def strip_blank_parts(response: ModelResponse) -> None:
    """
    Remove blank text parts, in place.

    They are not an answer, and some providers refuse a history with one for ever after.
    """
    response.parts = [
        part
        for part in response.parts
        if not (isinstance(part, TextPart) and is_blank(part.content))
    ]


def make_call_ids_unique(response: ModelResponse, known: set[str]) -> set[str]:
    """
    Replace each call id that was used before, in place; return all ids of the response.

    Two equal ids in one response abort a run; ids repeated over steps mix up their results.
    """
    seen: set[str] = set()
    parts: list[Any] = list(response.parts)
    for index, part in enumerate(parts):
        if part.part_kind == "tool-call":
            if part.tool_call_id in known | seen or not part.tool_call_id:
                parts[index] = replace(part, tool_call_id=f"call_{uuid.uuid4().hex}")
            seen.add(parts[index].tool_call_id)
    response.parts = parts
    return seen
