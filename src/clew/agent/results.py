"""Tool results as the journal keeps them: what the model is given is the same after a restart."""

from __future__ import annotations

import json
from dataclasses import replace
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

from clew.agent.ports import ToolResult
from clew.core.journal import RESULT_PREFIX, CallStatus
from clew.core.text import middle_out, storable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


def encode(value: object) -> tuple[str, str]:
    """(format, JSON) of what a tool returned, no longer than the context can bear."""
    if not isinstance(value, ToolReturn):
        return VALUE, _json(value)
    whole = cast("ToolReturn[Any]", value)
    content = whole.content
    bounded = replace(
        whole,
        return_value=_plain(whole.return_value),
        content=_plain(content)
        if content is None or isinstance(content, str)
        else [_plain(item) for item in content],
        metadata=_plain(whole.metadata),
    )
    return RETURN, _RETURN.dump_json(bounded).decode()


def _plain(value: object) -> Any:
    """What a value is once it was stored."""
    return tool_return_content_ta.validate_json(_json(value))


def _json(value: object) -> str:
    if items := _with_files(value):
        return f"[{','.join(map(_json, items))}]"
    match value:
        case str():
            return json.dumps(_bounded(value))
        case BinaryContent(data=data, media_type=media_type) if len(data) > LARGEST_FILE:
            return json.dumps(f"[a file of {len(data):,} bytes ({media_type}), left out]")
        case BinaryContent():
            return tool_return_ta.dump_json(value, by_alias=True).decode()
        case _:
            return _bounded_json(value)


def _with_files(value: object) -> Sequence[object] | None:
    if not isinstance(value, (list, tuple)):
        return None
    items = cast("Sequence[object]", value)
    return items if any(isinstance(item, BinaryContent) for item in items) else None


def _bounded_json(value: object) -> str:
    try:
        text = tool_return_ta.dump_json(value, by_alias=True).decode()
    except PydanticSerializationError:
        return json.dumps(_bounded(str(value)))
    return text if len(text) <= LONGEST else json.dumps(_bounded(text))


def said(status: CallStatus, text: str) -> ToolResult:
    """A result that is no value of the tool but a sentence about the call."""
    return ToolResult(status=status, format=VALUE, result=json.dumps(_bounded(text)))


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


def _bounded(value: str) -> str:
    return storable(middle_out(value, LONGEST))
