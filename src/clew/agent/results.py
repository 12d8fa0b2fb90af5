"""Tool results as the journal keeps them: what the model is given is the same after a restart."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from pydantic import TypeAdapter
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.messages import (
    BinaryContent,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturn,
    ToolReturnPart,
    tool_return_content_ta,
    tool_return_ta,
)
from pydantic_core import PydanticSerializationError

from clew.agent.known_secrets import redact
from clew.agent.ports import ToolResult
from clew.agent.stored_results import abridge, keep_whole
from clew.core.journal import RESULT_PREFIX, CallStatus, FullToolResult
from clew.core.text import sanitize_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic_ai.messages import ModelMessage

#: A value, or a ``ToolReturn`` with content of its own.
VALUE = "pydantic-ai/tool-value"
RETURN = "pydantic-ai/tool-return"
#: Stands in for the result of a call that waits for a person; never stored, never sent.
WAITING = "waiting for approval"

_RETURN: TypeAdapter[ToolReturn[Any]] = TypeAdapter(ToolReturn)

#: Characters of one result that enter the context; the rest is left out in the middle.
LONGEST = 60_000
#: Bytes of a file in a result; one that is larger is left out.
LARGEST_FILE = 5_000_000


def encode(value: object, *, tool: str, call_id: str) -> ToolResult:
    """What a tool returned, no longer than the context can bear; what is longer is kept whole."""
    bounds = _Bounds(tool=tool, call_id=call_id)
    if not isinstance(value, ToolReturn):
        result = bounds.json(value)
        return ToolResult(status=CallStatus.OK, format=VALUE, result=result, whole=bounds.whole())
    given = cast("ToolReturn[Any]", value)
    content = given.content
    bounded = replace(
        given,
        return_value=bounds.plain(given.return_value),
        content=bounds.plain(content)
        if content is None or isinstance(content, str)
        else [bounds.plain(item) for item in content],
        metadata=bounds.plain(given.metadata),
    )
    result = _RETURN.dump_json(bounded).decode()
    return ToolResult(status=CallStatus.OK, format=RETURN, result=result, whole=bounds.whole())


@dataclass(kw_only=True)
class _Bounds:
    """Bounds the texts of one result, and knows the whole of those that are too long."""

    tool: str
    call_id: str
    _long: list[str] = field(default_factory=list[str])

    def whole(self) -> FullToolResult | None:
        """Return what was too long, in the order in which it stands."""
        if not self._long:
            return None
        text = "\n".join(self._long)
        return keep_whole(text, tool=self.tool, call_id=self.call_id)

    def plain(self, value: object) -> Any:
        """Return what a value is once it was stored."""
        return tool_return_content_ta.validate_json(self.json(value))

    def text(self, value: str) -> str:
        """Return a text as the context can bear it, without secrets."""
        value = redact(value)
        if len(value) <= LONGEST:
            return sanitize_text(value)
        self._long.append(value)
        return sanitize_text(abridge(value, LONGEST, call_id=self.call_id))

    def json(self, value: object) -> str:
        """Return a value as JSON."""
        if items := _with_files(value):
            return f"[{','.join(map(self.json, items))}]"
        match value:
            case str():
                return json.dumps(self.text(value))
            case BinaryContent(data=data, media_type=media_type) if len(data) > LARGEST_FILE:
                return json.dumps(f"[a file of {len(data):,} bytes ({media_type}), left out]")
            case BinaryContent():
                return tool_return_ta.dump_json(value, by_alias=True).decode()
            case _:
                return self._of_value(value)

    def _of_value(self, value: object) -> str:
        try:
            text = tool_return_ta.dump_json(value, by_alias=True).decode()
        except PydanticSerializationError:
            return json.dumps(self.text(str(value)))
        cleaned = redact(text)
        if len(cleaned) > LONGEST or (cleaned != text and not _is_json(cleaned)):
            return json.dumps(self.text(cleaned))
        return cleaned


def _is_json(text: str) -> bool:
    """Whether a text still is a value: a secret may have been a number."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _with_files(value: object) -> Sequence[object] | None:
    if not isinstance(value, (list, tuple)):
        return None
    items = cast("Sequence[object]", value)
    return items if any(isinstance(item, BinaryContent) for item in items) else None


def said(status: CallStatus, text: str, *, tool: str = "", call_id: str = "") -> ToolResult:
    """A result that is no value of the tool but a sentence about the call."""
    bounds = _Bounds(tool=tool, call_id=call_id)
    result = json.dumps(bounds.text(text))
    whole = bounds.whole() if call_id else None
    return ToolResult(status=status, format=VALUE, result=result, whole=whole)


def given(result: ToolResult | None) -> Any:
    """
    What Pydantic AI is given for a stored result.

    :raises ModelRetry: if the tool asked the model to try again
    """
    if result is None:
        return WAITING
    value = _decode(result)
    if result.status is CallStatus.RETRY:
        raise ModelRetry(value)
    return value if result.status is CallStatus.OK else f"{RESULT_PREFIX[result.status]}{value}"


def _decode(result: ToolResult) -> Any:
    if result.format == RETURN:
        return _RETURN.validate_json(result.result)
    return tool_return_content_ta.validate_json(result.result)


def closed_batch(
    response: ModelResponse, known: Mapping[str, ToolResult], *, otherwise: ToolResult
) -> ModelRequest:
    """The results of a batch that goes no further, in call order, each call with one."""
    parts = [
        _part(part, known.get(part.tool_call_id, otherwise))
        for part in response.parts
        if isinstance(part, ToolCallPart)
    ]
    return ModelRequest(parts=parts)


def _part(call: ToolCallPart[Any], result: ToolResult) -> ToolReturnPart:
    value = _decode(result)
    if isinstance(value, ToolReturn):
        value = cast("ToolReturn[Any]", value).return_value
    content = value if result.status is CallStatus.OK else f"{RESULT_PREFIX[result.status]}{value}"
    return ToolReturnPart(tool_name=call.tool_name, content=content, tool_call_id=call.tool_call_id)


def result_text(message: ModelMessage, call_id: str) -> str | None:
    """Return what a message says in answer to a call."""
    return next(
        (
            part.model_response_str()
            for part in message.parts
            if isinstance(part, ToolReturnPart) and part.tool_call_id == call_id
        ),
        None,
    )
