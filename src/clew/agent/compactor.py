"""
Compactors: how a context is made smaller.

The default drives two tiers of the Pydantic AI Harness: old tool results are cleared, and if that
is not enough what is old is summarised. What must not be touched, and when it runs, is decided by
``clew.core.compaction``.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from pydantic_ai.messages import (
    BinaryContent,
    CompactionPart,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.usage import RunUsage

from clew.agent.failures import FailureKind, classify
from clew.agent.files import file_in
from clew.agent.messages import answered_ids, call_ids, text_of
from clew.agent.stored_results import TOOL, abridge
from clew.core.compaction import MessageSize, estimate_tokens
from clew.core.showing import MAX_TEXT_CHARS, PICTURE
from clew.errors import OperationRefused

__all__ = [
    "HEADINGS",
    "Compactor",
    "HarnessCompactor",
    "RunUsage",
    "SummaryCutError",
    "calls_of",
    "cleared",
    "context_window",
    "original_seq",
    "reported_tokens",
    "shortened",
    "sized",
    "summary_message",
    "summary_of",
]

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.messages import ModelMessage, ModelRequestPart

    from clew.agent.models import Model

HEADINGS = (
    "## Intent",
    "## Key decisions",
    "## Artifacts",
    "## Done",
    "## Planned",
    "## Tried and failed",
    "## Open questions",
)
#: A default for how long one summary may take.
DEADLINE = timedelta(seconds=90)
#: Tokens in one request for a summary: a model that cannot read so few is given up.
LEAST = 1_000
#: Characters of one tool result that the summariser reads.
_RESULT = 8_000
_CLEARED = "[result cleared]"
#: What an image counts, whatever its bytes.
_IMAGE_BYTES = 4_500

_PROMPT = """\
You keep the memory of a conversation between a person and an assistant. The messages below will \
be replaced by what you write, so it must hold all that is needed to go on.

Write it under these headings, leaving out those that would be empty:

## Intent
What the person wants, with every constraint and preference; the newest open request in full.

## Key decisions
What was decided, and why.

## Artifacts
Exact names, copied to the letter: files, paths, identifiers, commands, numbers, dates, addresses.

## Done
Only what a result in the messages shows to be done.

## Planned
What was announced or agreed and is not shown to be done.

## Tried and failed
What was tried without success, and the reason, so that it is not tried again.

## Open questions
What is unknown, unanswered or blocked.

Write only the summary.

<messages>
{messages}
</messages>\
"""


#: For a model that was cut: the same in fewer words.
_BRIEF = _PROMPT.replace(
    "Write only the summary.",
    "Write only the summary, in 250 words at most: a longer one is cut off and lost.",
)


class SummaryCutError(OperationRefused):
    """A summary that reached the model's limit of output before its end."""

    def __init__(self) -> None:
        super().__init__("the summary was cut off by the model's limit of output")


class Compactor(Protocol):
    """What makes contexts smaller; must not change the messages that it is given."""

    async def clear(
        self, messages: Sequence[ModelMessage], *, keep_from: int
    ) -> list[ModelMessage]:
        """The same messages, those before ``keep_from`` with their tool results cleared."""
        ...

    async def summarise(
        self,
        messages: Sequence[ModelMessage],
        model: Model,
        *,
        window: int,
        focus: str | None,
        usage: RunUsage,
    ) -> str:
        """
        A summary that can stand in for the messages; ``window`` is the model's, in tokens.

        Whatever goes wrong with the model is raised; within its deadline per request.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class HarnessCompactor:
    """The default."""

    #: How long one summary may take.
    deadline: timedelta = DEADLINE

    async def clear(
        self, messages: Sequence[ModelMessage], *, keep_from: int
    ) -> list[ModelMessage]:
        from pydantic_ai_harness.compaction import (  # noqa: PLC0415  (7 MB, seldom needed)
            ClearToolResults,
            compact_now,
        )

        kept = sum(len(answered_ids(message)) for message in messages[keep_from:])
        strategy = ClearToolResults[None](max_tokens=1, keep_pairs=kept, placeholder=_CLEARED)
        done = await compact_now(strategy, list(messages), model=_no_model())
        return [_pointing(message) for message in done]

    async def summarise(
        self,
        messages: Sequence[ModelMessage],
        model: Model,
        *,
        window: int,
        focus: str | None,
        usage: RunUsage,
    ) -> str:
        summary, rest, most = "", list(messages), window // 2
        while rest:
            chunk = chunks(rest, most=most)[0]
            before = [summary_message(summary)] if summary else []
            try:
                summary = await self._one([*before, *chunk], model, focus=focus, usage=usage)
            except Exception as error:
                # Its window is smaller than was thought.
                most //= 4
                too_long = classify(error).kind in (FailureKind.OVERFLOW, FailureKind.TOO_LARGE)
                if not too_long or most < LEAST:
                    raise
            else:
                rest = rest[len(chunk) :]
        return summary

    async def _one(
        self,
        messages: list[ModelMessage],
        model: Model,
        *,
        focus: str | None,
        usage: RunUsage,
    ) -> str:
        try:
            return await self._request(messages, model, _PROMPT, focus=focus, usage=usage)
        except SummaryCutError:
            # Its limit of output is short: fewer words fit.
            return await self._request(messages, model, _BRIEF, focus=focus, usage=usage)

    async def _request(
        self,
        messages: list[ModelMessage],
        model: Model,
        prompt: str,
        *,
        focus: str | None,
        usage: RunUsage,
    ) -> str:
        from pydantic_ai_harness.compaction import (  # noqa: PLC0415  (7 MB, seldom needed)
            SummarizingCompaction,
            compact_now,
        )

        strategy = SummarizingCompaction[None](
            max_messages=1,
            keep_messages=1,
            preserve_first_user_message=False,
            tool_return_max_chars=_RESULT,
            summary_prompt=prompt,
        )
        # The newest message is always kept, so one is added that need not be.
        asked = [*messages, ModelRequest.user_text_prompt("…")]
        async with asyncio.timeout(self.deadline.total_seconds()):
            result = await compact_now(
                strategy, asked, model=_WholeAnswers(model), focus=focus, usage=usage
            )
        return next(
            (
                part.content or ""
                for message in result
                for part in message.parts
                if isinstance(part, CompactionPart)
            ),
            "",
        )


class _WholeAnswers(WrapperModel):
    """A model whose answer counts only if its limit of output did not cut it."""

    async def request(self, *arguments: Any, **more: Any) -> ModelResponse:
        response = await super().request(*arguments, **more)
        if response.finish_reason == "length":
            raise SummaryCutError
        return response


def _pointing(message: ModelMessage) -> ModelMessage:
    """Say of each result that was cleared how it can be read."""
    if not isinstance(message, ModelRequest):
        return message
    parts = [
        replace(part, content=f'[result cleared: {TOOL}("{part.tool_call_id}") reads it]')
        if isinstance(part, ToolReturnPart) and part.content == _CLEARED
        else part
        for part in message.parts
    ]
    if all(new is old for new, old in zip(parts, message.parts, strict=True)):
        return message
    return replace(message, parts=parts)


def _no_model() -> Model:
    from clew.agent.offline import offline_model  # noqa: PLC0415  (only a place holder)

    return offline_model()


def summary_message(summary: str) -> ModelRequest:
    """A summary as a message of a context."""
    return ModelRequest(
        parts=[
            CompactionPart(
                content=summary,
                metadata={"pydantic-ai-harness.compaction.summary.v1": True},
            )
        ]
    )


def summary_of(message: ModelMessage) -> str | None:
    """What a summary says; ``None`` if the message is none."""
    found = [part.content or "" for part in message.parts if isinstance(part, CompactionPart)]
    return "\n".join(found) if found else None


def calls_of(message: ModelMessage) -> tuple[str, ...]:
    """The tool calls of a message, each as name and arguments."""
    calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
    return tuple(f"{call.tool_name} {call.args_as_json_str()}" for call in calls)


def shortened(message: ModelMessage, most: int) -> ModelMessage:
    """The message with each of its results as at most so many characters; itself if they are."""
    if not isinstance(message, ModelRequest):
        return message
    parts = [_shortened(part, most) for part in message.parts]
    if all(new is old for new, old in zip(parts, message.parts, strict=True)):
        return message
    return replace(message, parts=parts)


def _shortened(part: ModelRequestPart, most: int) -> ModelRequestPart:
    if not isinstance(part, ToolReturnPart):
        return part
    text = part.model_response_str()
    if len(text) <= most:
        return part
    return replace(part, content=abridge(text, most, call_id=part.tool_call_id))


def cleared(message: ModelMessage, seq: int) -> ModelMessage:
    """A message whose results were cleared or shortened, marked with the entry that has them."""
    return replace(message, metadata={**(message.metadata or {}), _SEQ: seq})


def original_seq(message: ModelMessage) -> int | None:
    """The entry that has what was cleared from a message; ``None`` if nothing was."""
    return (message.metadata or {}).get(_SEQ)


_SEQ = "clew_seq"


def chunks(messages: Sequence[ModelMessage], *, most: int) -> list[list[ModelMessage]]:
    """The messages in parts of at most ``most`` tokens, where one message alone is not more."""
    parts: list[list[ModelMessage]] = [[]]
    size = 0
    for message in messages:
        tokens = min(sized(message).tokens, estimate_tokens(_RESULT))
        if parts[-1] and size + tokens > most:
            parts.append([])
            size = 0
        parts[-1].append(message)
        size += tokens
    return parts


def sized(message: ModelMessage) -> MessageSize:
    """What the rules of compaction need to know of a message."""
    return MessageSize(
        tokens=estimate_tokens(_bytes(message)) + 4,
        calls=frozenset(call_ids(message)),
        answers=frozenset(answered_ids(message)),
        # What a tool shows beside its result is no message of a person's.
        from_user=isinstance(message, ModelRequest)
        and not answered_ids(message)
        and any(isinstance(part, UserPromptPart) for part in message.parts),
        is_summary=summary_of(message) is not None,
    )


def _bytes(message: ModelMessage) -> int:
    size = len(text_of(message).encode())
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            size += len(part.tool_name) + len(part.args_as_json_str())
        elif isinstance(part, CompactionPart):
            size += len((part.content or "").encode())
        elif isinstance(part, UserPromptPart) and not isinstance(part.content, str):
            size += sum(map(_shown_bytes, part.content))
    return size


def _shown_bytes(item: object) -> int:
    """What a picture, or a file that is named, adds to its line once the model is shown it."""
    if isinstance(item, BinaryContent):
        return _IMAGE_BYTES
    if (file := file_in(item)) is None:
        return 0
    return _IMAGE_BYTES if file["kind"] == PICTURE else min(file["size"], MAX_TEXT_CHARS)


def reported_tokens(message: ModelMessage) -> int:
    """What the provider counted for the request and this response; 0 where it did not say."""
    if not isinstance(message, ModelResponse) or not message.usage.input_tokens:
        return 0
    return message.usage.input_tokens + message.usage.output_tokens


def context_window(model: Model) -> int | None:
    """The model's context window in tokens, where it is known."""
    return model.profile.get("context_window")
