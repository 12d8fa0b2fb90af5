"""Error bodies of the real providers, by kind and format."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.testing.provider.replies import Fail, FailKind
    from clew.testing.provider.request import ProviderRequest, WireFormat

HTML_PAGE = """<!DOCTYPE html>
<html><head><title>502 Bad Gateway</title></head>
<body><center><h1>502 Bad Gateway</h1></center><hr><center>nginx</center></body></html>
"""


class ErrorResponse(NamedTuple):
    """An error with its HTTP status and body."""

    status: int
    body: Mapping[str, object]


class _OpenaiError(NamedTuple):
    status: int
    type: str
    code: str | None
    message: str
    param: str | None = None


OPENAI_ERRORS: dict[FailKind, _OpenaiError] = {
    "rate_limit": _OpenaiError(
        429,
        "requests",
        "rate_limit_exceeded",
        "Rate limit reached for {model} in organization org-fake on requests per min (RPM): "
        "Limit 3, Used 3, Requested 1. Please try again in 20s.",
    ),
    "quota": _OpenaiError(
        429,
        "insufficient_quota",
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    "authentication": _OpenaiError(
        401,
        "invalid_request_error",
        "invalid_api_key",
        "Incorrect API key provided: sk-fake. You can find your API key at "
        "https://platform.openai.com/account/api-keys.",
    ),
    "payment": _OpenaiError(
        402, "insufficient_quota", "insufficient_credits", "Insufficient credits. Add more."
    ),
    "unknown_model": _OpenaiError(
        404,
        "invalid_request_error",
        "model_not_found",
        "The model `{model}` does not exist or you do not have access to it.",
    ),
    "too_large": _OpenaiError(
        413, "invalid_request_error", "request_too_large", "Request body is too large."
    ),
    "context_overflow": _OpenaiError(
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "This model's maximum context length is {window} tokens. However, your messages resulted "
        "in {tokens} tokens. Please reduce the length of the messages.",
        "messages",
    ),
    "bad_tool_call": _OpenaiError(
        400,
        "invalid_request_error",
        None,
        "Invalid 'messages': function.arguments of a tool call is not valid JSON.",
        "messages",
    ),
    "server": _OpenaiError(
        500,
        "server_error",
        None,
        "The server had an error while processing your request. Sorry about that!",
    ),
    "unavailable": _OpenaiError(
        503, "server_error", "service_unavailable", "The server is temporarily unavailable."
    ),
    "overloaded": _OpenaiError(
        529, "server_error", "overloaded", "The engine is currently overloaded."
    ),
}
ANTHROPIC_ERRORS: dict[FailKind, tuple[int, str, str]] = {
    "rate_limit": (
        429,
        "rate_limit_error",
        "This request would exceed your organization's rate limit of 50 requests per minute.",
    ),
    "quota": (
        400,
        "invalid_request_error",
        "Your credit balance is too low to access the Anthropic API.",
    ),
    "authentication": (401, "authentication_error", "invalid x-api-key"),
    "payment": (402, "billing_error", "There is an issue with your billing."),
    "unknown_model": (404, "not_found_error", "model: {model}"),
    "too_large": (413, "request_too_large", "Request exceeds the maximum size"),
    "context_overflow": (
        400,
        "invalid_request_error",
        "prompt is too long: {tokens} tokens > {window} maximum",
    ),
    "bad_tool_call": (
        400,
        "invalid_request_error",
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
    ),
    "server": (500, "api_error", "Internal server error"),
    "unavailable": (503, "api_error", "Service unavailable"),
    "overloaded": (529, "overloaded_error", "Overloaded"),
}


def failure_response(fail: Fail, request: ProviderRequest) -> ErrorResponse:
    """Return the status and body of a failure in the format of the request."""
    usual = _default_response(fail.kind, fail.window, request)
    return ErrorResponse(
        fail.status or usual.status, usual.body if fail.body is None else fail.body
    )


def rejection_response(format_: WireFormat, message: str, number: int = 0) -> ErrorResponse:
    """Return a 400 for a request that violates the protocol."""
    if format_ == "messages":
        return ErrorResponse(400, _anthropic_body("invalid_request_error", message, number))
    return ErrorResponse(400, _openai_body("invalid_request_error", None, message, None))


def _default_response(kind: FailKind, window: int, request: ProviderRequest) -> ErrorResponse:
    words = {
        "model": request.model,
        "tokens": str(max(request.input_tokens, window + 1)),
        "window": str(window),
    }
    if request.format == "messages":
        status, type_, message = ANTHROPIC_ERRORS[kind]
        return ErrorResponse(
            status, _anthropic_body(type_, message.format(**words), request.number)
        )
    entry = OPENAI_ERRORS[kind]
    message = entry.message.format(**words)
    return ErrorResponse(entry.status, _openai_body(entry.type, entry.code, message, entry.param))


def _openai_body(
    type_: str, code: str | None, message: str, param: str | None
) -> Mapping[str, object]:
    return {"error": {"message": message, "type": type_, "param": param, "code": code}}


def _anthropic_body(type_: str, message: str, number: int) -> Mapping[str, object]:
    error = {"type": type_, "message": message}
    return {"type": "error", "error": error, "request_id": f"req_{number:06}"}
