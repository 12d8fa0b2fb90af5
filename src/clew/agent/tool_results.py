"""Tool results in stored form, so that the model gets the same after a restart."""

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

from clew.agent.known_secrets import redact_secrets
from clew.agent.protocols import ToolResult
from clew.agent.stored_results import abridge_result, make_full_result
from clew.core.journal import RESULT_PREFIX, CallStatus, FullToolResult
from clew.core.text import sanitize_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic_ai.messages import ModelMessage

#: Formats: a value, or a ``ToolReturn`` with its own content.
VALUE_FORMAT = "pydantic-ai/tool-value"
RETURN_FORMAT = "pydantic-ai/tool-return"
#: Placeholder result of a call that waits for approval; never stored, never sent.
WAITING_PLACEHOLDER = "waiting for approval"

_RETURN_ADAPTER: TypeAdapter[ToolReturn[Any]] = TypeAdapter(ToolReturn)

#: Characters of one result in the context; the middle of longer ones is left out.
MAX_RESULT_CHARS = 60_000
#: Bytes of a file in a result; larger files are left out.
MAX_FILE_BYTES = 5_000_000


def encode_result(value: object, *, tool: str, call_id: str) -> ToolResult:
    """Return a tool's value in stored form, cut for the context; long ones also in full."""
    bounds = _ResultEncoder(tool=tool, call_id=call_id)
    if not isinstance(value, ToolReturn):
        result = bounds.to_json(value)
        return ToolResult(
            status=CallStatus.OK,
            format=VALUE_FORMAT,
            result=result,
            whole=bounds.make_full_result(),
        )
    given = cast("ToolReturn[Any]", value)
    content = given.content
    bounded = replace(
        given,
        return_value=bounds.to_plain_value(given.return_value),
        content=bounds.to_plain_value(content)
        if content is None or isinstance(content, str)
        else [bounds.to_plain_value(item) for item in content],
        metadata=bounds.to_plain_value(given.metadata),
    )
    result = _RETURN_ADAPTER.dump_json(bounded).decode()
    return ToolResult(
        status=CallStatus.OK, format=RETURN_FORMAT, result=result, whole=bounds.make_full_result()
    )


@dataclass(kw_only=True)
class _ResultEncoder:
    """Encoder of one result, which limits its texts and collects the long ones in full."""

    tool: str
    call_id: str
    _long: list[str] = field(default_factory=list[str])

    def make_full_result(self) -> FullToolResult | None:
        """Return the long texts in their original order; ``None`` if there are none."""
        if not self._long:
            return None
        text = "\n".join(self._long)
        return make_full_result(text, tool=self.tool, call_id=self.call_id)

    def to_plain_value(self, value: object) -> Any:
        """Return a value as it is after storing and loading."""
        return tool_return_content_ta.validate_json(self.to_json(value))

    def limit_text(self, value: str) -> str:
        """Return a text without secrets, limited in length."""
        value = redact_secrets(value)
        if len(value) <= MAX_RESULT_CHARS:
            return sanitize_text(value)
        self._long.append(value)
        return sanitize_text(abridge_result(value, MAX_RESULT_CHARS, call_id=self.call_id))

    def to_json(self, value: object) -> str:
        """Return a value as JSON."""
        if items := _items_if_files(value):
            return f"[{','.join(map(self.to_json, items))}]"
        match value:
            case str():
                return json.dumps(self.limit_text(value))
            case BinaryContent(data=data, media_type=media_type) if len(data) > MAX_FILE_BYTES:
                return json.dumps(f"[a file of {len(data):,} bytes ({media_type}), left out]")
            case BinaryContent():
                return tool_return_ta.dump_json(value, by_alias=True).decode()
            case _:
                return self._encode_value(value)

    def _encode_value(self, value: object) -> str:
        try:
            text = tool_return_ta.dump_json(value, by_alias=True).decode()
        except PydanticSerializationError:
            return json.dumps(self.limit_text(str(value)))
        cleaned = redact_secrets(text)
        if len(cleaned) > MAX_RESULT_CHARS or (cleaned != text and not _is_valid_json(cleaned)):
            return json.dumps(self.limit_text(cleaned))
        return cleaned


def _is_valid_json(text: str) -> bool:
    """Return whether a text is still valid JSON: a redacted secret may have been a number."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _items_if_files(value: object) -> Sequence[object] | None:
    if not isinstance(value, (list, tuple)):
        return None
    items = cast("Sequence[object]", value)
    return items if any(isinstance(item, BinaryContent) for item in items) else None


def make_text_result(
    status: CallStatus, text: str, *, tool: str = "", call_id: str = ""
) -> ToolResult:
    """Return a result that describes the call instead of a value from the tool."""
    bounds = _ResultEncoder(tool=tool, call_id=call_id)
    result = json.dumps(bounds.limit_text(text))
    whole = bounds.make_full_result() if call_id else None
    return ToolResult(status=status, format=VALUE_FORMAT, result=result, whole=whole)


def to_tool_return(result: ToolResult | None) -> Any:
    """
    Return the value for Pydantic AI from a stored result.

    :raises ModelRetry: if the tool asked the model to retry
    """
    if result is None:
        return WAITING_PLACEHOLDER
    value = _decode_result(result)
    if result.status is CallStatus.RETRY:
        raise ModelRetry(value)
    return value if result.status is CallStatus.OK else f"{RESULT_PREFIX[result.status]}{value}"


def get_text(result: ToolResult) -> str:
    """Return the text of a stored result, or its JSON if it is no text."""
    value: object = None if result.format == RETURN_FORMAT else json.loads(result.result)
    return value if isinstance(value, str) else result.result


class NestedCallFailed(Exception):
    """Call inside another one that has no value; the outer tool would take a text for one."""


def to_nested_return(result: ToolResult | None) -> Any:
    """
    Return the value for the tool that made a call inside its own.

    :raises ModelRetry: if the called tool asked to retry
    :raises NestedCallFailed: if the call was denied, failed, or has no known outcome
    """
    assert result is not None
    value = _decode_result(result)
    if result.status is CallStatus.RETRY:
        raise ModelRetry(value)
    if result.status is not CallStatus.OK:
        raise NestedCallFailed(f"{RESULT_PREFIX[result.status]}{value}")
    return value


def _decode_result(result: ToolResult) -> Any:
    if result.format == RETURN_FORMAT:
        return _RETURN_ADAPTER.validate_json(result.result)
    return tool_return_content_ta.validate_json(result.result)


def complete_batch(
    response: ModelResponse, known: Mapping[str, ToolResult], *, otherwise: ToolResult
) -> ModelRequest:
    """Return results for all calls of a batch that ends here, in call order."""
    parts = [
        _make_return_part(part, known.get(part.tool_call_id, otherwise))
        for part in response.parts
        if isinstance(part, ToolCallPart)
    ]
    return ModelRequest(parts=parts)


def _make_return_part(call: ToolCallPart[Any], result: ToolResult) -> ToolReturnPart:
    value = _decode_result(result)
    if isinstance(value, ToolReturn):
        value = cast("ToolReturn[Any]", value).return_value
    content = value if result.status is CallStatus.OK else f"{RESULT_PREFIX[result.status]}{value}"
    return ToolReturnPart(tool_name=call.tool_name, content=content, tool_call_id=call.tool_call_id)


def extract_result_text(message: ModelMessage, call_id: str) -> str | None:
    """Return the text of a message's answer to a call."""
    return next(
        (
            part.model_response_str()
            for part in message.parts
            if isinstance(part, ToolReturnPart) and part.tool_call_id == call_id
        ),
        None,
    )
