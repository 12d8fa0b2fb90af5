"""
The loop of steps: one model request and the tool calls that it asked for, until there is an answer.

One code path for fresh, resumed and compacted turns: each run starts from the stored context and
does the next thing that it asks for. Nothing is sent that is not stored, and nothing is acted on
before it is stored.
"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
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

from clew.agent.beside import Beside
from clew.agent.failures import CutResponse, EndlessResponse
from clew.agent.limits import CodeLimits, RequestClock
from clew.agent.messages import call_ids, is_stand_in, stand_in, text_of
from clew.agent.models import name_of
from clew.agent.pairing import paired
from clew.agent.ports import Asked
from clew.agent.rounds import MOST, goes_round
from clew.agent.threads import Threads
from clew.agent.tolerant.thinking import lone_close
from clew.agent.tools import Journaling
from clew.core.events import DeltaKind
from clew.core.text import is_blank
from clew.core.turn import OUTPUT_KEY
from clew.errors import ClewError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.agent import AbstractAgent
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import Model
    from pydantic_ai.run import AgentRun

    from clew.agent.ports import Journal, LoopContext, TurnLog

#: A default for how long a provider may send nothing.
SILENCE = timedelta(seconds=120)
#: A default for how long one streamed response may take: some never end by themselves.
LONGEST_RESPONSE = timedelta(minutes=30)
#: Characters of one response; more than any model gives.
MOST_TEXT = 2_000_000
#: A default for how long a tool may take.
LONGEST_CALL = timedelta(minutes=10)
_ALWAYS_ENDS = frozenset({"openai", "anthropic"})
log = structlog.get_logger(__name__)

_BEFORE = "before the model was asked"
_CUT = "the provider's reply ended in the middle"
_ENDLESS = "the provider's reply did not come to an end"
# Steps are counted with the turn, which may have several runs.
_LIMITS = UsageLimits(request_limit=None)
_THREADS = Threads()


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The turn has an answer: ``unstored`` is still to be stored, ``text`` is what is told."""

    unstored: tuple[ModelMessage, ...]
    text: str
    #: Not said in a response: it is what an output tool made.
    made: bool
    #: The model had reached its limit of output.
    cut: bool
    #: As rendered for the last request.
    instructions: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspended:
    """The turn waits for a person; everything that could run has run and is stored."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OutOfSteps:
    """The turn has used all the model requests that it may make."""

    steps: int


@dataclass(frozen=True, kw_only=True, slots=True)
class GoesRound:
    """The model asks for the same again and again, and gets the same."""

    tools: str
    times: int


Result = Answer | Suspended | OutOfSteps | GoesRound


class Loop:
    """Runs a turn of an agent; holds nothing between runs."""

    def __init__(
        self,
        agent: AbstractAgent[Any, Any],
        *,
        max_steps: int,
        silence: timedelta = SILENCE,
        longest_response: timedelta = LONGEST_RESPONSE,
        longest_call: timedelta = LONGEST_CALL,
        code: CodeLimits = CodeLimits(),  # noqa: B008  (frozen)
    ) -> None:
        self.agent = agent
        #: Model requests that one turn may make.
        self.max_steps = max_steps
        #: How long a provider may send nothing that makes sense.
        self.silence = silence
        #: How long a provider may go on with one streamed response.
        self.longest_response = longest_response
        #: How long a tool may take.
        self.longest_call = longest_call
        #: How long toolsets and the agent's own functions may take.
        self.code = code

    async def run(self, log: TurnLog, journal: Journal, model: Model, *, stream: bool) -> Result:
        """
        Go on with a turn from what is stored until it has an answer or must wait.

        What the model or the provider does wrong is raised as Pydantic AI raises it; nothing that
        was stored is lost, and running again from the store is always right. Cancelling is safe for
        the same reason.
        """
        context = await log.context()
        beside, clock = Beside(), RequestClock(self.code)
        tools = Journaling(journal, self.longest_call, context.retries, self.code.toolset)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(beside.end)
            stack.enter_context(self.agent.using_thread_executor(_THREADS))
            if context.instructions is not None:
                # Rendered anew they could differ, and the prefix would not be the same any more.
                stack.enter_context(self.agent.override(instructions=context.instructions))
            async with clock.code("before the run began", self.code.preparation):
                run = await stack.enter_async_context(
                    self.agent.iter(
                        message_history=_still_asked(context.messages),
                        model=model,
                        usage_limits=_LIMITS,
                        capabilities=[tools, beside, clock],
                    )
                )
            run.ctx.state.output_retries_used = context.retries.get(OUTPUT_KEY, 0)
            return await _Steps(
                self, run, log, journal, context, clock, model=name_of(model), stream=stream
            ).drive()


class _Steps:
    """One run of an agent's graph, node by node."""

    def __init__(  # noqa: PLR0913  (made in one place)
        self,
        loop: Loop,
        run: AgentRun[Any, Any],
        log: TurnLog,
        journal: Journal,
        context: LoopContext,
        clock: RequestClock,
        *,
        model: str,
        stream: bool,
    ) -> None:
        self._run, self._log, self._journal = run, log, journal
        self._model, self._stream, self._clock = model, stream, clock
        self._longest_call = loop.longest_call.total_seconds()
        self._left = loop.max_steps - context.steps
        self._silence = loop.silence.total_seconds()
        self._longest = loop.longest_response.total_seconds()
        self._used = context.steps
        self._known = {call for message in context.messages for call in call_ids(message)}
        # The context ends in what the first node handles: that is stored already.
        self._stored = True
        self._answer: Answer | None = None
        self._instructions = context.instructions
        # Characters of text that the response under way has shown.
        self._said = 0
        #: A response that came and is not stored: if it never is, its cost still counts.
        self._unpaid: ModelResponse | None = None

    async def drive(self) -> Result:
        try:
            return await self._driven()
        except ClewError:
            raise
        except Exception:
            if self._unpaid is not None and self._unpaid.usage.has_values():
                await self._log.store_usage(self._unpaid)
            raise

    async def _driven(self) -> Result:
        first: Any = self._run.next_node
        async with self._clock.code(_BEFORE, self._clock.limits.preparation):
            node: Any = await self._run.next(first)
        while True:
            if Agent.is_model_request_node(node):
                if self._left <= 0:
                    return OutOfSteps(steps=self._used)
                if (tools := goes_round([*self._run.all_messages(), node.request])) is not None:
                    return GoesRound(tools=tools, times=MOST)
                node = await self._request(node)
            elif Agent.is_call_tools_node(node):
                node = await self._act(node)
                if self._journal.suspended:
                    return Suspended()
            else:
                assert isinstance(node, End)
                assert self._answer is not None
                return self._answer

    async def _request(self, node: Any) -> Any:
        if not self._stored:
            await self._log.store_request(node.request, self._retries())
        await self._join(node)
        if (smaller := await self._log.fit()) is not None:
            self._replace(node, smaller.messages)
            # A summary takes its time: who wrote meanwhile is heard now, not a step later.
            await self._join(node)
        try:
            with self._log.waiting():
                following = await self._heard(node)
        finally:
            self._instructions = node.request.instructions
            asked = Asked(model=self._model, stream=self._stream, instructions=self._instructions)
            self._log.asked(asked)
        self._left -= 1
        self._used += 1
        self._stored = False
        return following

    async def _join(self, node: Any) -> None:
        """Let the messages that steer join what is to be sent."""
        for steered in await self._log.steered():
            node.request.parts = [*node.request.parts, *steered.parts]

    def _retries(self) -> dict[str, int]:
        """Retries with the step that has just ended, as the library is about to count them."""
        tools = self._run.ctx.deps.tool_manager
        before = {} if tools.ctx is None else tools.ctx.retries
        counts = {name: n for name, n in before.items() if name not in tools.succeeded_tools}
        counts |= {name: before.get(name, 0) + 1 for name in tools.failed_tools}
        counts[OUTPUT_KEY] = self._run.ctx.state.output_retries_used
        return {name: count for name, count in counts.items() if count}

    def _replace(self, node: Any, messages: Sequence[ModelMessage]) -> None:
        """Go on with a compacted context; what is to be sent is its last request."""
        history = paired(messages)
        pending: list[Any] = []
        while history and isinstance(history[-1], ModelRequest):
            pending = [*history.pop().parts, *pending]
        self._run.ctx.state.message_history[:] = history
        node.request.parts = pending

    async def _heard(self, node: Any) -> Any:
        """Send the request and take in the response, unless the provider falls silent."""
        self._said = 0
        end = asyncio.get_running_loop().time() + self._longest
        try:
            async with self._clock.request(self._silence) as deadline:
                if self._stream:
                    await self._streamed(node, deadline, end)
                following = await self._run.next(node)
        except TimeoutError as error:
            if asyncio.get_running_loop().time() < end:
                raise
            raise EndlessResponse(_ENDLESS) from error
        except (UnexpectedModelBehavior, ModelAPIError) as error:
            if self._said and unexplained(error):
                raise CutResponse(_CUT) from error
            raise
        if Agent.is_call_tools_node(following):
            self._take_in(following.model_response)
        return following

    def _take_in(self, response: ModelResponse) -> None:
        self._unpaid = response
        refuse_cut(response)
        if separate_thinking(response) and self._said:
            self._log.retract("the beginning was thinking")
            self._said = 0
            self._say(text_of(response))
        without_blanks(response)
        if all(isinstance(part, ThinkingPart) for part in response.parts):
            log.warning(
                "model_said_nothing",
                response=response.provider_response_id,
                model=response.model_name,
                finish_reason=response.finish_reason,
                input_tokens=response.usage.input_tokens,
                output_tokens=response.usage.output_tokens,
            )
            if self._said:
                self._log.retract("the reply was blank")

    async def _streamed(self, node: Any, deadline: asyncio.Timeout, end: float) -> None:
        loop = asyncio.get_running_loop()
        async with node.stream(self._run.ctx) as events:
            try:
                async for event in events:
                    deadline.reschedule(min(loop.time() + self._silence, end))
                    self._show(event)
            except Exception:
                self._unpaid = events.response
                raise

    def _show(self, event: object) -> None:
        match event:
            case (
                PartStartEvent(part=TextPart(content=text))
                | PartDeltaEvent(delta=TextPartDelta(content_delta=text))
            ) if text:
                self._say(text)
            case (
                PartStartEvent(part=ThinkingPart(content=text))
                | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str() as text))
            ) if text:
                self._log.say(DeltaKind.THINKING, text)
            case _:
                pass

    def _say(self, text: str) -> None:
        self._said += len(text)
        if self._said > MOST_TEXT:
            raise EndlessResponse(_ENDLESS)
        if text:
            self._log.say(DeltaKind.TEXT, text)

    async def _act(self, node: Any) -> Any:
        response: ModelResponse = node.model_response
        fresh = not self._stored
        if fresh:
            self._known |= make_calls_unique(response, self._known)
        if fresh and call_ids(response):
            await self._store(response)
            fresh = False
        calls = max(1, len(call_ids(response)))
        # Each call has a limit of its own; some are run one after the other.
        limit = calls * self._longest_call + self._clock.limits.preparation
        async with self._clock.code("after the model had answered", limit):
            following = await self._run.next(node)
        if isinstance(following, End):
            self._answer = self._final(response, fresh=fresh)
        elif fresh:
            # What is wrong with it is told in the next request, so both belong to the context.
            if all(isinstance(part, ThinkingPart) for part in response.parts):
                stand_in(response, "the reply was empty")
            await self._store(response)
        self._stored = False
        return following

    async def _store(self, response: ModelResponse) -> None:
        await self._log.store_response(response, self._instructions)
        self._unpaid = None

    def _final(self, response: ModelResponse, *, fresh: bool) -> Answer:
        unstored: list[ModelMessage] = [response] if fresh else []
        last = self._run.all_messages()[-1]
        if isinstance(last, ModelRequest) and last.parts:
            # An output tool ended the run: its call has a result too.
            unstored.append(last)
        said = text_of(response)
        return Answer(
            unstored=tuple(unstored),
            text=said or self._output(),
            made=is_blank(said),
            cut=response.finish_reason == "length",
            instructions=self._instructions,
        )

    def _output(self) -> str:
        result = self._run.result
        return "" if result is None or result.output is None else str(result.output)


def _still_asked(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The messages up to what is still to be answered, where an answer that was empty is last."""
    history = paired(messages)
    while history and is_stand_in(history[-1]):
        history.pop()
    return history


def unexplained(error: UnexpectedModelBehavior | ModelAPIError) -> bool:
    """Whether the library only says that it can make nothing of a reply."""
    if isinstance(error, ModelAPIError):
        return type(error) is ModelAPIError and not error.in_stream
    return type(error) is UnexpectedModelBehavior


def refuse_cut(response: ModelResponse) -> None:
    """
    Refuse what a provider began and did not end.

    :raises CutResponse: if there is no finish reason where the provider always gives one
    """
    ends = response.provider_name in _ALWAYS_ENDS
    if response.state == "incomplete" or (ends and response.finish_reason is None):
        raise CutResponse(_CUT)


def separate_thinking(response: ModelResponse) -> bool:
    """
    Take thinking out of the text that only a closing tag ends, in place; whether there was any.

    While such a text streams nobody can know what it is.
    """
    parts: list[Any] = []
    for part in response.parts:
        lone = lone_close(part.content) if isinstance(part, TextPart) else None
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


def without_blanks(response: ModelResponse) -> None:
    """
    Take out texts that hold nothing to read, in place.

    They are no answer, and some providers refuse a history that holds one for ever after.
    """
    response.parts = [
        part
        for part in response.parts
        if not (isinstance(part, TextPart) and is_blank(part.content))
    ]


def make_calls_unique(response: ModelResponse, known: set[str]) -> set[str]:
    """
    Give a new id to each call whose id was used before, in place; all ids of the response.

    Two equal ids in one response abort a run, and ids repeated over steps mix up their results.
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
