"""
Compactors: ways to make a context smaller.

The default uses two tiers of the Pydantic AI Harness: old tool results are cleared, and if
that is not enough, old messages are summarised. ``clew.core.compaction`` decides when it
runs and which messages stay untouched.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
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

from clew.agent.attachments import parse_attachment_line
from clew.agent.messages import extract_answered_ids, extract_call_ids, extract_text
from clew.agent.provider_errors import FailureKind, classify_error
from clew.agent.stored_results import READ_TOOL, abridge_result
from clew.core.attachments import MAX_TEXT_CHARS, PICTURE
from clew.core.compaction import MessageSize, estimate_tokens
from clew.errors import OperationRefused
from clew.record import Record

__all__ = [
    "SUMMARY_HEADINGS",
    "Compactor",
    "HarnessCompactor",
    "RunUsage",
    "SummaryTruncatedError",
    "estimate_size",
    "extract_summary",
    "format_tool_calls",
    "get_model_context_window",
    "get_original_seq",
    "get_reported_tokens",
    "make_summary_message",
    "mark_results_cleared",
    "truncate_results",
]

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.messages import ModelMessage, ModelRequestPart

    from clew.agent.models import Model

SUMMARY_HEADINGS = (
    "## Intent",
    "## Key decisions",
    "## Artifacts",
    "## Done",
    "## Planned",
    "## Tried and failed",
    "## Open questions",
)
#: Default time limit of one summary.
SUMMARY_TIMEOUT = timedelta(seconds=90)
#: Tokens per summary request below which a model with a smaller window is given up.
MIN_CHUNK_TOKENS = 1_000
#: Characters of one tool result sent to the summariser.
_MAX_RESULT_CHARS = 8_000
_CLEARED_PLACEHOLDER = "[result cleared]"
#: Size that an image counts as, whatever its bytes.
_IMAGE_BYTES = 4_500

_SUMMARY_PROMPT = """\
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


#: Shorter variant, after the output limit truncated a summary.
_BRIEF_SUMMARY_PROMPT = _SUMMARY_PROMPT.replace(
    "Write only the summary.",
    "Write only the summary, in 250 words at most: a longer one is cut off and lost.",
)


class SummaryTruncatedError(OperationRefused):
    """Summary truncated by the model's output limit."""

    def __init__(self) -> None:
        super().__init__("the summary was cut off by the model's limit of output")


class Compactor(Protocol):
    """Strategy that makes contexts smaller; must not change the given messages."""

    async def clear_results(
        self, messages: Sequence[ModelMessage], *, keep_from: int
    ) -> list[ModelMessage]:
        """Return the messages, with the tool results before index ``keep_from`` cleared."""
        ...

    async def summarise_messages(
        self,
        messages: Sequence[ModelMessage],
        model: Model,
        *,
        window: int,
        focus: str | None,
        usage: RunUsage,
    ) -> str:
        """
        Return a summary of the messages; ``window`` is the model's, in tokens.

        Errors of the model are raised, each within its deadline per request.
        """
        ...


class HarnessCompactor(Record):
    """Default compactor, built on the Pydantic AI Harness."""

    #: Time limit of one summary.
    deadline: timedelta = SUMMARY_TIMEOUT

    async def clear_results(
        self, messages: Sequence[ModelMessage], *, keep_from: int
    ) -> list[ModelMessage]:
        from pydantic_ai_harness.compaction import (  # noqa: PLC0415  (7 MB, seldom needed)
            ClearToolResults,
            compact_now,
        )

        kept = sum(len(extract_answered_ids(message)) for message in messages[keep_from:])
        strategy = ClearToolResults[None](
            max_tokens=1, keep_pairs=kept, placeholder=_CLEARED_PLACEHOLDER
        )
        done = await compact_now(strategy, list(messages), model=_make_placeholder_model())
        return [_add_read_hints(message) for message in done]

    async def summarise_messages(
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
            chunk = split_into_chunks(rest, most=most)[0]
            before = [make_summary_message(summary)] if summary else []
            try:
                summary = await self._summarise_chunk(
                    [*before, *chunk], model, focus=focus, usage=usage
                )
            except Exception as error:
                # Its context window is smaller than expected.
                most //= 4
                too_long = classify_error(error).kind in (
                    FailureKind.OVERFLOW,
                    FailureKind.TOO_LARGE,
                )
                if not too_long or most < MIN_CHUNK_TOKENS:
                    raise
            else:
                rest = rest[len(chunk) :]
        return summary

    async def _summarise_chunk(
        self,
        messages: list[ModelMessage],
        model: Model,
        *,
        focus: str | None,
        usage: RunUsage,
    ) -> str:
        try:
            return await self._request_summary(
                messages, model, _SUMMARY_PROMPT, focus=focus, usage=usage
            )
        except SummaryTruncatedError:
            # Its output limit is low: ask for fewer words.
            return await self._request_summary(
                messages, model, _BRIEF_SUMMARY_PROMPT, focus=focus, usage=usage
            )

    async def _request_summary(
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
            tool_return_max_chars=_MAX_RESULT_CHARS,
            summary_prompt=prompt,
        )
        # The newest message is always kept, so a dummy is added.
        asked = [*messages, ModelRequest.user_text_prompt("…")]
        async with asyncio.timeout(self.deadline.total_seconds()):
            result = await compact_now(
                strategy, asked, model=_UntruncatedModel(model), focus=focus, usage=usage
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


class _UntruncatedModel(WrapperModel):
    """Model that raises an error if the output limit truncated its answer."""

    async def request(self, *arguments: Any, **more: Any) -> ModelResponse:
        response = await super().request(*arguments, **more)
        if response.finish_reason == "length":
            raise SummaryTruncatedError
        return response


def _add_read_hints(message: ModelMessage) -> ModelMessage:
    """Add to each cleared result how to read it."""
    if not isinstance(message, ModelRequest):
        return message
    parts = [
        replace(part, content=f'[result cleared: {READ_TOOL}("{part.tool_call_id}") reads it]')
        if isinstance(part, ToolReturnPart) and part.content == _CLEARED_PLACEHOLDER
        else part
        for part in message.parts
    ]
    if all(new is old for new, old in zip(parts, message.parts, strict=True)):
        return message
    return replace(message, parts=parts)


def _make_placeholder_model() -> Model:
    from clew.agent.offline import make_offline_model  # noqa: PLC0415  (only a placeholder)

    return make_offline_model()


def make_summary_message(summary: str) -> ModelRequest:
    """Return a summary as a message of a context."""
    return ModelRequest(
        parts=[
            CompactionPart(
                content=summary,
                metadata={"pydantic-ai-harness.compaction.summary.v1": True},
            )
        ]
    )


def extract_summary(message: ModelMessage) -> str | None:
    """Return the text of a summary message; ``None`` for any other message."""
    found = [part.content or "" for part in message.parts if isinstance(part, CompactionPart)]
    return "\n".join(found) if found else None


def format_tool_calls(message: ModelMessage) -> tuple[str, ...]:
    """Return the tool calls of a message, each as name and arguments."""
    calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
    return tuple(f"{call.tool_name} {call.args_as_json_str()}" for call in calls)


def truncate_results(message: ModelMessage, most: int) -> ModelMessage:
    """Return the message with each result cut to ``most`` characters; itself if unchanged."""
    if not isinstance(message, ModelRequest):
        return message
    parts = [_truncate_result(part, most) for part in message.parts]
    if all(new is old for new, old in zip(parts, message.parts, strict=True)):
        return message
    return replace(message, parts=parts)


def _truncate_result(part: ModelRequestPart, most: int) -> ModelRequestPart:
    if not isinstance(part, ToolReturnPart):
        return part
    text = part.model_response_str()
    if len(text) <= most:
        return part
    return replace(part, content=abridge_result(text, most, call_id=part.tool_call_id))


def mark_results_cleared(message: ModelMessage, seq: int) -> ModelMessage:
    """Return the message marked with the entry that has its cleared or truncated results."""
    return replace(message, metadata={**(message.metadata or {}), _ORIGINAL_SEQ_KEY: seq})


def get_original_seq(message: ModelMessage) -> int | None:
    """Return the seq of the entry with the cleared results; ``None`` if none was cleared."""
    return (message.metadata or {}).get(_ORIGINAL_SEQ_KEY)


_ORIGINAL_SEQ_KEY = "clew_seq"


def split_into_chunks(messages: Sequence[ModelMessage], *, most: int) -> list[list[ModelMessage]]:
    """Split the messages into chunks of at most ``most`` tokens; a larger one is alone."""
    parts: list[list[ModelMessage]] = [[]]
    size = 0
    for message in messages:
        tokens = min(estimate_size(message).tokens, estimate_tokens(_MAX_RESULT_CHARS))
        if parts[-1] and size + tokens > most:
            parts.append([])
            size = 0
        parts[-1].append(message)
        size += tokens
    return parts


def estimate_size(message: ModelMessage) -> MessageSize:
    """Return the properties of a message that the compaction rules use."""
    return MessageSize(
        tokens=estimate_tokens(_count_bytes(message)) + 4,
        calls=frozenset(extract_call_ids(message)),
        answers=frozenset(extract_answered_ids(message)),
        # Content that a tool adds beside its result is not a user message.
        from_user=isinstance(message, ModelRequest)
        and not extract_answered_ids(message)
        and any(isinstance(part, UserPromptPart) for part in message.parts),
        is_summary=extract_summary(message) is not None,
    )


def _count_bytes(message: ModelMessage) -> int:
    size = len(extract_text(message).encode())
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            size += len(part.tool_name) + len(part.args_as_json_str())
        elif isinstance(part, CompactionPart):
            size += len((part.content or "").encode())
        elif isinstance(part, UserPromptPart) and not isinstance(part.content, str):
            size += sum(map(_count_item_bytes, part.content))
    return size


def _count_item_bytes(item: object) -> int:
    """Return the bytes that an image or a named file adds when its content is sent."""
    if isinstance(item, BinaryContent):
        return _IMAGE_BYTES
    if (file := parse_attachment_line(item)) is None:
        return 0
    return _IMAGE_BYTES if file["kind"] == PICTURE else min(file["size"], MAX_TEXT_CHARS)


def get_reported_tokens(message: ModelMessage) -> int:
    """Return the provider's token count of request and response; 0 if not reported."""
    if not isinstance(message, ModelResponse) or not message.usage.input_tokens:
        return 0
    return message.usage.input_tokens + message.usage.output_tokens


def get_model_context_window(model: Model) -> int | None:
    """Return the model's context window in tokens, if known."""
    return model.profile.get("context_window")
