"""B176: what providers really say when they refuse, and what is done about each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from clew.agent.provider_errors import FailureKind as Kind
from clew.testing import Fail, Text
from tests.failing.desk import HASTE, always, open_desk

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping

    from structlog.typing import EventDict

    from tests.failing.desk import Desk, Format

#: Asked so often, then the next model.
AGAIN, ELSEWHERE = (4, True), (1, True)
#: Asked so often, then the person is told: no other model would do better.
TOLD = (1, False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """One error as a provider sent it."""

    name: str
    form: Format
    status: int
    body: Mapping[str, object]
    kind: Kind
    action: tuple[int, bool]
    retry_after: float | None = None


def openai(
    name: str, status: int, message: str, kind: Kind, action: tuple[int, bool], **fields: object
) -> Body:
    body = {"error": {"message": message, "param": None, **fields}}
    return Body(name=name, form="chat", status=status, body=body, kind=kind, action=action)


def anthropic(
    name: str, status: int, type_: str, message: str, kind: Kind, action: tuple[int, bool]
) -> Body:
    body = {"type": "error", "error": {"type": type_, "message": message}, "request_id": "req_1"}
    return Body(name=name, form="messages", status=status, body=body, kind=kind, action=action)


_RATE = "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000"
_QUOTA = "You exceeded your current quota, please check your plan and billing details."
_LONG = "This model's maximum context length is 4096 tokens. However, you requested 5011 tokens."
_LLAMA = "the request exceeds the available context size, try increasing it"
_GEMINI = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
_GROQ = "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 9000"
_SESSION = "You have hit your usage limit. It resets in 5 hours."
_CREDIT = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing"
_PAIRING = "messages.3: `tool_use` ids were found without `tool_result` blocks immediately after"

BODIES = (
    openai("openai rate", 429, _RATE, Kind.RATE_LIMIT, AGAIN, type="tokens", code="rate_limit"),
    openai("openai quota", 429, _QUOTA, Kind.QUOTA, ELSEWHERE, code="insufficient_quota"),
    openai("openrouter rate", 429, "Provider returned error", Kind.RATE_LIMIT, AGAIN, code=429),
    openai("overload as 429", 429, "Busy", Kind.OVERLOADED, AGAIN, type="overloaded_error"),
    replace(openai("session quota", 429, _SESSION, Kind.RATE_LIMIT, ELSEWHERE), retry_after=18_000),
    openai("openrouter credits", 402, "Insufficient credits", Kind.QUOTA, ELSEWHERE, code=402),
    openai("openai overload", 503, "The engine is overloaded", Kind.OVERLOADED, AGAIN),
    openai("server", 500, "The server had an error", Kind.SERVER, AGAIN, type="server_error"),
    openai("gateway timeout", 504, "upstream request timeout", Kind.TIMEOUT, (2, True)),
    openai("groq too large", 413, _GROQ, Kind.OVERFLOW, TOLD, type="tokens"),
    openai("openai long", 400, _LONG, Kind.OVERFLOW, TOLD, code="context_length_exceeded"),
    openai("vllm long", 400, _LONG, Kind.OVERFLOW, TOLD, type="BadRequestError", code=400),
    openai("llama.cpp long", 400, _LLAMA, Kind.OVERFLOW, TOLD, type="exceed_context_size_error"),
    openai("gemini long", 400, _GEMINI, Kind.OVERFLOW, TOLD, type="INVALID_ARGUMENT"),
    openai("openai key", 401, "Incorrect API key", Kind.AUTH, ELSEWHERE, code="invalid_api_key"),
    openai("region", 403, "Country, region, or territory not supported", Kind.FORBIDDEN, ELSEWHERE),
    openai("ollama model", 404, 'model "x" not found, try pulling it', Kind.NO_MODEL, ELSEWHERE),
    openai("bad schema", 400, "Invalid schema for function 'f'", Kind.REFUSED, TOLD),
    anthropic("claude rate", 429, "rate_limit_error", "Too many", Kind.RATE_LIMIT, AGAIN),
    anthropic("claude overload", 529, "overloaded_error", "Overloaded", Kind.OVERLOADED, AGAIN),
    anthropic("claude credit", 400, "invalid_request_error", _CREDIT, Kind.QUOTA, ELSEWHERE),
    anthropic(
        "claude long",
        400,
        "invalid_request_error",
        "prompt is too long: 210000 tokens > 200000 maximum",
        Kind.OVERFLOW,
        TOLD,
    ),
    anthropic("claude large", 413, "request_too_large", "Too large", Kind.OVERFLOW, TOLD),
    anthropic("claude pairing", 400, "invalid_request_error", _PAIRING, Kind.REFUSED, TOLD),
)


@pytest.fixture
def logs() -> Iterator[list[EventDict]]:
    with capture_logs() as found:
        yield found  # pyright: ignore[reportReturnType]  (declared as any mappings)


@pytest.fixture(scope="module")
async def desks(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[dict[Format, Desk]]:
    """For each format a model that fails, and one beside it that answers."""
    patience = replace(HASTE, breaker_threshold=1_000)
    async with (
        open_desk(tmp_path_factory.mktemp("chat"), "chat", "chat", patience=patience) as chat,
        open_desk(
            tmp_path_factory.mktemp("claude"), "messages", "chat", patience=patience
        ) as claude,
    ):
        yield {"chat": chat, "messages": claude}


@pytest.mark.parametrize("error", BODIES, ids=lambda body: body.name)
async def test_b176_each_error_body_has_its_class_and_its_action(
    desks: dict[Format, Desk], error: Body, logs: list[EventDict]
) -> None:
    desk = desks[error.form]
    talk = await desk.begin()
    # The case before may have left the first model alone for a while.
    desk.means.models.record_success(0)
    fail = Fail(status=error.status, body=error.body, retry_after=error.retry_after)
    desk.play(always(fail), always(Text("the other one answers")))
    told = await desk.say(talk, "do it")
    asked, elsewhere = error.action
    assert told.asked == [asked, int(elsewhere)]
    kinds = {log["kind"] for log in logs if log["event"] == "model_request_failed"}
    assert kinds == {error.kind.value}
    if elsewhere:
        assert told.text == "the other one answers"
        assert [notice.partition(":")[0] for notice in told.notices] == ["Another model is asked"]
    else:
        assert told.code == error.kind.value
