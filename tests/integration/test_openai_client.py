"""Our OpenAI client sends and hears what the official one does, without its walk over the lists."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import json
import sys
from typing import TYPE_CHECKING, Any, cast, get_args, get_type_hints

import httpx2
import openai
import pytest
from openai import AsyncOpenAI
from openai._utils import PropertyInfo
from openai.resources.chat.completions import AsyncCompletions
from openai.resources.responses import AsyncResponses
from openai.types.chat import completion_create_params
from openai.types.responses import ParsedResponseFunctionToolCall, Response, response_create_params
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import ModelRateLimitError
from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition

from clew.agent.models import ModelSpec, build_model
from clew.agent.openai_client import OpenAIClient
from clew.testing import (
    Calls,
    CapturedRequest,
    Fail,
    FakeProvider,
    Reply,
    ScriptedCall,
    Text,
    reply_in_sequence,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452")
CLIENTS = (AsyncOpenAI, OpenAIClient)
WIRES = ("chat", "responses")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """One request of Pydantic AI."""

    messages: list[ModelMessage]
    model: str = "gpt-5"
    wires: tuple[str, ...] = WIRES
    parameters: ModelRequestParameters = dataclasses.field(default_factory=ModelRequestParameters)
    settings: dict[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    reply: Reply = dataclasses.field(
        default_factory=lambda: Text("four", thinking="two and two", chunks=5)
    )


def said(*content: Any) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(content[0] if len(content) == 1 else list(content))])


def tool(name: str, **options: Any) -> ToolDefinition:
    number = {"type": "number", "description": "größer als π"}
    schema = {
        "type": "object",
        "properties": {"a": number, "b": {"anyOf": [number, {"$ref": "#/$defs/N"}]}},
        "required": ["a"],
        "additionalProperties": False,
        "$defs": {"N": {"type": "array", "items": number}},
    }
    return ToolDefinition(name=name, parameters_json_schema=schema, **options)


TOOLS = ModelRequestParameters(
    function_tools=[tool("add", description="Add."), tool("sub", strict=False)],
    instruction_parts=[InstructionPart(content="Be brief.")],
)
ANSWER = OutputObjectDefinition(
    name="answer",
    description="An answer.",
    json_schema={
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    },
)
PARALLEL = Calls(
    [ScriptedCall("add", {"a": 1}, id="call_a"), ScriptedCall("sub", {"a": 2}, id="call_b")]
)
CASES = {
    "text": Case(messages=[said("what is 2 + 2? ✓ \U0001f600 \u2028")]),
    "settings of chat completions": Case(
        messages=[said("go")],
        model="gpt-4o",
        settings={"seed": 7, "stop_sequences": ["\n"], "logit_bias": {"50256": -100}},
        wires=("chat",),
    ),
    "system and instructions": Case(
        messages=[
            ModelRequest(parts=[SystemPromptPart("You count."), UserPromptPart("go")]),
            ModelResponse(parts=[TextPart("one"), TextPart("two")]),
            said("on"),
        ],
        parameters=ModelRequestParameters(
            instruction_parts=[
                InstructionPart(content="Be brief."),
                InstructionPart(content="It is noon.", dynamic=True),
            ]
        ),
    ),
    "tools": Case(messages=[said("add")], parameters=TOOLS, reply=PARALLEL),
    "one tool must be called": Case(
        messages=[said("add")],
        parameters=dataclasses.replace(TOOLS, allow_text_output=False),
        settings={"tool_choice": "required", "parallel_tool_calls": False},
        reply=Calls([ScriptedCall("add", {"a": 1.5, "b": [None, "ü"]}, id="call_c")], text="so"),
    ),
    "parallel calls and their results": Case(
        messages=[
            said("add"),
            ModelResponse(
                parts=[
                    TextPart("let me see"),
                    ToolCallPart("add", {"a": 1}, tool_call_id="call_1"),
                    ToolCallPart("sub", '{"a":2}', tool_call_id="call_2"),
                ]
            ),
            ModelRequest(
                parts=[
                    ToolReturnPart("add", {"sum": [1, None, 2.5]}, tool_call_id="call_1"),
                    ToolReturnPart("sub", "minus", tool_call_id="call_2"),
                    UserPromptPart("and?"),
                ]
            ),
        ],
        parameters=TOOLS,
    ),
    "images": Case(
        messages=[
            said(
                "what is this?",
                BinaryContent(PNG, media_type="image/png"),
                ImageUrl(url="https://example.org/a.png"),
                "look",
            )
        ]
    ),
    "an image from a tool": Case(
        messages=[
            said("draw"),
            ModelResponse(parts=[ToolCallPart("add", {}, tool_call_id="call_1")]),
            ModelRequest(
                parts=[
                    ToolReturnPart(
                        "add",
                        ["here", BinaryContent(PNG, media_type="image/png")],
                        tool_call_id="call_1",
                    )
                ]
            ),
        ],
        parameters=TOOLS,
    ),
    "thinking": Case(
        messages=[
            said("think"),
            ModelResponse(
                parts=[
                    ThinkingPart(
                        "hm",
                        id="rs_1",
                        signature="c2ln",
                        provider_name="openai",
                        provider_details={},
                    ),
                    TextPart("thought", id="msg_1"),
                ],
                provider_name="openai",
            ),
            said("again"),
        ],
        settings={"thinking": "high"},
    ),
    "an output schema": Case(
        messages=[said("count")],
        parameters=ModelRequestParameters(output_mode="native", output_object=ANSWER),
    ),
    "settings": Case(
        messages=[said("go")],
        model="gpt-4o",
        parameters=TOOLS,
        settings={
            "max_tokens": 100,
            "temperature": 0.3,
            "top_p": 0.9,
            "parallel_tool_calls": True,
            "openai_user": "ann",
            "openai_store": False,
            "timeout": 7.5,
            "extra_headers": {"x-extra": "1"},
            "extra_body": {"options": {"num_ctx": 4096}, "tools": []},
        },
    ),
}


def model(name: str, wire: str, client: AsyncOpenAI) -> Model:
    kind = OpenAIChatModel if wire == "chat" else OpenAIResponsesModel
    return kind(name, provider=OpenAIProvider(openai_client=client))


async def heard(
    client_class: type[AsyncOpenAI], wire: str, case: Case, *, stream: bool
) -> tuple[CapturedRequest, list[object]]:
    """Request of a case at the provider, and the response: the answer, or its events."""
    # With the profile of the official client, several system messages go out.
    with FakeProvider(reply_in_sequence([case.reply]), templates=False) as provider:
        async with (
            asyncio.timeout(120),
            client_class(base_url=provider.openai_url, api_key="sk-x", max_retries=0) as client,
        ):
            answer = await ask(model(case.model, wire, client), case, stream=stream)
        (captured,) = provider.wait_until_settled()
    return captured, [comparable(item) for item in answer]


async def ask(model: Model, case: Case, *, stream: bool) -> list[object]:
    settings = cast("ModelSettings", case.settings)
    if not stream:
        return [
            await model_request(
                model,
                case.messages,
                model_settings=settings,
                model_request_parameters=case.parameters,
            )
        ]
    async with model_request_stream(
        model, case.messages, model_settings=settings, model_request_parameters=case.parameters
    ) as events:
        return [*[event async for event in events], events.get()]


def comparable(item: object) -> object:
    """Without the time and the port, which differ between two requests."""
    if isinstance(item, ModelResponse):
        return dataclasses.replace(item, timestamp=None, provider_url=None)  # pyright: ignore[reportArgumentType]
    return item


def headers(captured: CapturedRequest) -> dict[str, str]:
    return {name: value for name, value in captured.headers.items() if name != "host"}


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize(
    ("name", "wire"), [(name, wire) for name, case in CASES.items() for wire in case.wires]
)
async def test_requests_and_answers_equal_those_of_the_official_client(
    name: str, wire: str, stream: bool
) -> None:
    plain, plain_answer = await heard(AsyncOpenAI, wire, CASES[name], stream=stream)
    ours, our_answer = await heard(OpenAIClient, wire, CASES[name], stream=stream)
    assert ours.json is not None
    assert ours.json == plain.json
    assert ours.body == plain.body
    assert (ours.path, ours.stream) == (plain.path, plain.stream)
    assert headers(ours) == headers(plain)
    assert our_answer == plain_answer
    assert ours.outcome == plain.outcome == "answered"


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_refusal_raises_the_same(wire: str, stream: bool) -> None:
    case = dataclasses.replace(CASES["text"], reply=Fail("rate_limit", retry_after=3))
    raised = list[ModelRateLimitError]()
    for client_class in CLIENTS:
        with pytest.raises(ModelRateLimitError) as caught:
            await heard(client_class, wire, case, stream=stream)
        raised.append(caught.value)
    plain, ours = raised
    assert (ours.body, ours.retry_after) == (plain.body, plain.retry_after)


@pytest.mark.parametrize("provider", ["openai", "openai-chat"])
async def test_a_setting_builds_a_model_on_our_client_without_retries(provider: str) -> None:
    built = build_model(ModelSpec(name=f"{provider}:x", base_url="http://127.0.0.1:9/v1"))
    client = cast("OpenAIChatModel", built).client
    assert isinstance(client, OpenAIClient)
    assert client.max_retries == 0
    await client.close()


# The client by itself, over a transport that records.

CHAT_ANSWER: dict[str, Any] = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "yes"},
        }
    ],
}
RESPONSES_ANSWER: dict[str, Any] = {
    "id": "r1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "status": "completed",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "output": [
        {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "yes", "annotations": []}],
        }
    ],
}
CREATE: dict[str, Any] = {"chat": AsyncCompletions.create, "responses": AsyncResponses.create}
NEEDED: dict[str, dict[str, Any]] = {
    "chat": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    "responses": {},
}
REQUEST_OPTIONS = {"extra_headers", "extra_query", "extra_body", "timeout"}


class Wiretap:
    """A client of a class whose requests are answered here and kept."""

    def __init__(self, client_class: type[AsyncOpenAI], wire: str, failures: int = 0) -> None:
        self.requests = list[httpx2.Request]()
        self._answer = CHAT_ANSWER if wire == "chat" else RESPONSES_ANSWER
        self._failures = failures
        self._wire = wire
        transport = httpx2.MockTransport(self._respond)
        self.client = client_class(
            base_url="http://fake/v1",
            api_key="sk-x",
            max_retries=0,
            http_client=httpx2.AsyncClient(transport=transport),
        )

    def _respond(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        if len(self.requests) <= self._failures:
            return httpx2.Response(500, headers={"retry-after-ms": "1"}, json={})
        if json.loads(request.content or "{}").get("stream"):
            stream = b"data: [DONE]\n\n"
            return httpx2.Response(
                200, headers={"content-type": "text/event-stream"}, content=stream
            )
        return httpx2.Response(200, json=self._answer)

    @property
    def resource(self) -> Any:
        return self.client.chat.completions if self._wire == "chat" else self.client.responses

    @property
    def sent(self) -> tuple[object, ...]:
        request = self.requests[-1]
        timeout = request.extensions["timeout"]
        return request.method, str(request.url), request.headers.raw, timeout, request.content

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.requests[-1].content)


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    return cast("str", request.param)


@pytest.fixture
async def pair(wire: str) -> Any:
    """The official client and ours, tapped."""
    plain, ours = (Wiretap(client_class, wire) for client_class in CLIENTS)
    async with plain.client, ours.client:
        yield plain, ours


Pair = tuple[Wiretap, Wiretap]


#: Every argument that the installed release takes, in both wires.
ARGUMENTS = [
    (wire, name)
    for wire, create in CREATE.items()
    for name in list(inspect.signature(create).parameters)[1:]
]


@pytest.mark.parametrize(("wire", "name"), ARGUMENTS)
async def test_no_argument_of_the_installed_release_is_dropped(
    pair: Pair, wire: str, name: str
) -> None:
    samples: dict[str, Any] = {"stream": True, "timeout": 5.0, "extra_headers": {"x-extra": "1"}}
    arguments = {**NEEDED[wire], name: samples.get(name, [{"sample": {"of": name}}])}
    if name in {"extra_query", "extra_body"}:
        arguments[name] = {"sample": name}
    for tap in pair:
        await tap.resource.create(**arguments)
    plain, ours = pair
    assert ours.sent == plain.sent
    assert name in REQUEST_OPTIONS or ours.body[name] == arguments[name]


async def test_an_unknown_argument_is_refused_alike(pair: Pair, wire: str) -> None:
    for arguments in ({**NEEDED[wire], "brand_new": 1}, {"brand_new": 1}):
        errors = list[str]()
        for tap in pair:
            with pytest.raises(TypeError) as caught:
                await tap.resource.create(**arguments)
            errors.append(str(caught.value))
        assert errors[0] == errors[1]
    assert not any(tap.requests for tap in pair)


MANY = [
    {"role": "user", "content": [{"type": "text", "text": str(number)}]} for number in range(200)
]


@pytest.mark.parametrize(("field", "wire"), [("messages", "chat"), ("input", "responses")])
async def test_the_transform_does_not_look_into_the_lists(pair: Pair, field: str) -> None:
    def look(tap: Wiretap) -> Callable[[], Any]:
        return lambda: tap.resource.create(model="m", tools=MANY, **{field: MANY})

    plain, ours = [await calls_of_the_transform(look(tap)) for tap in pair]
    assert plain > 1000
    assert ours < 100


async def calls_of_the_transform(do: Callable[[], Any]) -> int:
    count = 0

    def seen(frame: Any, event: str, _arg: object) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_filename.endswith(
            "openai/_utils/_transform.py"
        )

    await do()  # Without what is done only once.
    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        await do()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(
    ("params", "field"),
    [
        (completion_create_params.CompletionCreateParamsNonStreaming, "messages"),
        (completion_create_params.CompletionCreateParamsNonStreaming, "tools"),
        (response_create_params.ResponseCreateParamsNonStreaming, "input"),
        (response_create_params.ResponseCreateParamsNonStreaming, "tools"),
    ],
)
def test_the_transform_would_have_nothing_to_do_in_the_lists(params: type, field: str) -> None:
    seen = set[object]()
    notes = list(markers(get_type_hints(params, include_extras=True)[field], seen))
    assert len(seen) > 20
    assert not [note for note in notes if note.alias or note.format]


def markers(declared: Any, seen: set[object]) -> Iterator[PropertyInfo]:
    """Instructions to the transform from the types below a field."""
    if not isinstance(declared, type) and not get_args(declared):
        return
    if str(declared) in seen:
        return
    seen.add(str(declared))
    yield from (note for note in get_args(declared) if isinstance(note, PropertyInfo))
    fields = (
        get_type_hints(declared, include_extras=True).values()
        if hasattr(declared, "__total__")
        else ()
    )
    for inner in (*get_args(declared), *fields):
        yield from markers(inner, seen)


async def test_models_of_the_sdk_in_a_list_are_sent_as_the_official_client_does() -> None:
    call = ParsedResponseFunctionToolCall(
        type="function_call",
        call_id="call_1",
        name="add",
        arguments='{"a":1}',
        parsed_arguments={"a": 1},  # which no request may contain
    )
    earlier = [*Response.model_validate(RESPONSES_ANSWER).output, call]
    taps = [Wiretap(client_class, "responses") for client_class in CLIENTS]
    for tap in taps:
        async with tap.client:
            await tap.resource.create(
                model="m", input=[*earlier, {"role": "user", "content": "on"}]
            )
    assert taps[0].sent == taps[1].sent
    assert taps[1].body["input"][0]["content"][0]["text"] == "yes"


async def test_arguments_that_are_not_json_raise_and_nothing_is_sent(pair: Pair, wire: str) -> None:
    bad = [{"role": "user", "content": [{"type": "text", "text": object()}]}]
    for tap in pair:
        with pytest.raises(TypeError, match="not JSON serializable"):
            await tap.resource.create(
                **{**NEEDED[wire], "messages" if wire == "chat" else "input": bad}
            )
    # Here we differ: the official client leaves out a value that stands for "not given".
    bad[0]["content"] = cast("Any", openai.omit)
    with pytest.raises(TypeError, match="not JSON serializable"):
        await pair[1].resource.create(
            **{**NEEDED[wire], "messages" if wire == "chat" else "input": bad}
        )
    assert not any(tap.requests for tap in pair)


async def test_a_retry_sends_the_same_body(wire: str) -> None:
    taps = [Wiretap(client_class, wire, failures=1) for client_class in CLIENTS]
    for tap in taps:
        async with tap.client:
            tap.client = tap.client.with_options(max_retries=1)
            await tap.resource.create(**NEEDED[wire], tools=MANY)
    plain, ours = taps
    assert ours.sent == plain.sent
    assert len(ours.requests) == len(plain.requests) == 2
    assert ours.requests[0].content == ours.requests[1].content
    assert len(ours.body["tools"]) == len(MANY)


async def test_a_copy_with_options_is_ours_too(pair: Pair) -> None:
    copy = pair[1].client.with_options(timeout=3)
    assert isinstance(copy, OpenAIClient)
    assert type(copy.chat.completions) is type(pair[1].client.chat.completions)
    assert copy.chat.completions is copy.chat.completions
    assert copy.responses is copy.responses


async def test_raw_and_streaming_responses_go_through_ours(pair: Pair, wire: str) -> None:
    answers = list[tuple[object, ...]]()
    for tap in pair:
        raw = await tap.resource.with_raw_response.create(**NEEDED[wire])
        async with tap.resource.with_streaming_response.create(**NEEDED[wire]) as response:
            answers.append((raw.parse(), raw.headers, await response.parse(), tap.sent))
    assert answers[0] == answers[1]


async def test_other_methods_are_the_official_ones(pair: Pair) -> None:
    for tap in pair:
        await tap.client.chat.completions.update("c1", metadata={"a": "b"})
    assert pair[0].sent == pair[1].sent
    assert pair[1].body == {"metadata": {"a": "b"}}
