"""Quirks of all three formats: characters, thinking, usage, endings, odd content."""

# This table consists of JSON of any shape.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from clew.record import replace
from clew.testing.provider.quirks.quirk import (
    CALL_REPLY,
    DEFAULT_USAGE,
    FORMATS,
    RENDERERS,
    TEXT_REPLY,
    TWO_CALLS_REPLY,
    Quirk,
    ReplyBody,
    ReplyEvent,
    build_json_body,
    build_stream_body,
    insert_events,
)
from clew.testing.provider.resolved_reply import ResolvedCall

if TYPE_CHECKING:
    from clew.testing.provider.quirks.quirk import BodyChange, StreamChange
    from clew.testing.provider.request import WireFormat

Change = Callable[[Any], Any]
UNCHANGED: Final[dict[Any, Any]] = dict.fromkeys(FORMATS, lambda reply: reply)
THINKING_TEXT = "Two and forty, then."


def find_fields(form: WireFormat, data: Any, what: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each occurrence of a field in an event or reply: the object and its key."""
    if isinstance(data, dict):
        yield from _FIELD_FINDERS[form](data, what)


def _find_chat_fields(data: dict[str, Any], what: str) -> Iterator[tuple[dict[str, Any], str]]:
    if what == "usage":
        yield data, "usage"
    for choice in data.get("choices") or ():
        said = choice.get("delta") or choice.get("message") or {}
        if what == "end" and choice.get("finish_reason") is not None:
            yield choice, "finish_reason"
        elif what == "text" and said.get("content"):
            yield said, "content"


def _find_responses_fields(data: dict[str, Any], what: str) -> Iterator[tuple[dict[str, Any], str]]:
    response = data.get("response", data)
    if what == "usage" and "usage" in response:
        yield response, "usage"
    elif what == "end" and response.get("status") == "completed" and "output" in response:
        yield response, "status"
    elif what == "text" and data.get("type") == "response.output_text.delta":
        yield data, "delta"
    elif what == "text":
        for item in response.get("output") or ():
            for part in item.get("content") or ():
                yield part, "text"


def _find_messages_fields(data: dict[str, Any], what: str) -> Iterator[tuple[dict[str, Any], str]]:
    if what == "usage":
        for holder in (data, data.get("message")):
            if isinstance(holder, dict) and "usage" in holder:
                yield holder, "usage"
    elif what == "end":
        holder = data.get("delta", data)
        if holder.get("stop_reason") is not None:
            yield holder, "stop_reason"
    elif what == "text":
        if (data.get("delta") or {}).get("type") == "text_delta":
            yield data["delta"], "text"
        for block in data.get("content") or ():
            yield block, "text"


_FIELD_FINDERS = {
    "chat": _find_chat_fields,
    "responses": _find_responses_fields,
    "messages": _find_messages_fields,
}


def change_field(form: WireFormat, what: str, change: Change) -> Change:
    """Return a change of every occurrence of a field; ``DELETE`` removes it."""

    def change_reply(data: Any) -> Any:
        data = copy.deepcopy(data)
        for holder, key in list(find_fields(form, data, what)):
            holder[key] = change(holder.get(key))
            if holder[key] is DELETE:
                del holder[key]
        return data

    return change_reply


DELETE: Final = object()


def change_in_stream(what: str, change: Change) -> dict[Any, StreamChange]:
    """Change a field in each event, for all formats."""

    def change_events(form: WireFormat) -> StreamChange:
        one = change_field(form, what, change)
        return lambda events: [ReplyEvent(event.name, one(event.data)) for event in events]

    return {form: change_events(form) for form in FORMATS}


def change_in_body(what: str, change: Change) -> dict[Any, BodyChange]:
    """Change a field in an unstreamed reply, for all formats."""
    return {form: change_field(form, what, change) for form in FORMATS}


def change_everywhere(what: str, change: Change) -> dict[str, Any]:
    """Change a field in streams and in unstreamed replies."""
    return {"stream": change_in_stream(what, change), "whole": change_in_body(what, change)}


def _set_usage(*, read: object, written: object) -> dict[str, Any]:
    """Set these numbers as the usage, under the names of each format."""

    def change_usage(usage: Any) -> Any:
        if not isinstance(usage, dict):
            return usage
        names = {"prompt_tokens": read, "input_tokens": read}
        names |= {"completion_tokens": written, "output_tokens": written}
        return {key: names.get(key, value) for key, value in usage.items()}

    return change_everywhere("usage", change_usage)


def _repeat_usage(form: WireFormat) -> StreamChange:
    def change_events(events: list[ReplyEvent]) -> list[ReplyEvent]:
        last = next(
            holder[key]
            for event in reversed(events)
            for holder, key in find_fields(form, event.data, "usage")
            if holder.get(key)
        )
        return [ReplyEvent(e.name, _add_usage(form, e.data, last)) for e in events]

    return change_events


def _add_usage(form: WireFormat, data: Any, usage: Any) -> Any:
    if not isinstance(data, dict):
        return data
    data = copy.deepcopy(data)
    if form == "responses":
        for holder, key in find_fields(form, data, "usage"):
            holder[key] = usage
        return data
    if form == "messages" and data["type"] == "message_start":
        data["message"]["usage"] |= usage
        return data
    return {**data, "usage": usage}


def _split_parts(text: Any) -> Any:
    return [{"type": "text", "text": piece} for piece in (text[:3], text[3:]) if piece]


def _add_unknown_part(text: Any) -> Any:
    return [{"type": "text", "text": text}, {"type": "hologram", "data": "AAAA"}]


def _add_unknown_fields(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    return {**data, "x_trace": {"id": 7, "spans": [1, 2]}, "cost": "0.001", "obfuscation": "aQz"}


def _send_json(form: WireFormat, reply: Any = TEXT_REPLY) -> StreamChange:
    return lambda _: build_json_body(RENDERERS[form].render_body(reply))


def _send_always(body: ReplyBody) -> dict[str, Any]:
    return {
        "stream": dict.fromkeys(FORMATS, lambda _: body),
        "whole": dict.fromkeys(FORMATS, lambda _: body),
    }


def _insert_error(events: list[ReplyEvent]) -> ReplyBody:
    error = {"error": {"message": "Rate limit reached, wait.", "code": 429}}
    half = len(events) // 2
    return build_stream_body([*events[: half + 1], ReplyEvent(None, error)])


_RATE_LIMIT_ERROR = {"message": "Rate limit reached for this key.", "type": "rate_limit_exceeded"}
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_LONE_SURROGATE = "\ud83d"

COMMON_QUIRKS: tuple[Quirk, ...] = (
    Quirk(id="plain", description="a proper reply", stream=UNCHANGED, whole=UNCHANGED),
    Quirk(
        id="plain-calls",
        description="a proper reply with two calls",
        reply=TWO_CALLS_REPLY,
        stream=UNCHANGED,
        whole=UNCHANGED,
    ),
    Quirk(
        id="plain-to-stream",
        description="one JSON object although a stream was asked for",
        stream={form: _send_json(form) for form in FORMATS},
    ),
    Quirk(
        id="plain-calls-to-stream",
        description="one JSON object with calls instead of a stream",
        reply=TWO_CALLS_REPLY,
        stream={form: _send_json(form, TWO_CALLS_REPLY) for form in FORMATS},
    ),
    Quirk(
        id="half-character",
        description="half a surrogate pair in the text",
        reply=replace(TEXT_REPLY, text=f"An{_LONE_SURROGATE}swer", chunks=4),
        stream=UNCHANGED,
        whole=UNCHANGED,
        text=f"An{_REPLACEMENT}swer",
    ),
    Quirk(
        id="half-character-last",
        description="half a surrogate pair at the very end",
        reply=replace(TEXT_REPLY, text=f"Answer{_LONE_SURROGATE}", chunks=4),
        stream=UNCHANGED,
        whole=UNCHANGED,
        text=f"Answer{_REPLACEMENT}",
    ),
    Quirk(
        id="pair-in-two",
        description="a surrogate pair in two pieces of the text",
        reply=replace(TEXT_REPLY, text="\ud83d\ude00", chunks=2),
        stream=UNCHANGED,
        whole=UNCHANGED,
        text="😀",
    ),
    Quirk(
        id="half-character-thinking",
        description="halves of a pair in two pieces of the thinking",
        reply=replace(TEXT_REPLY, thinking="\ud83d\ude00\ud83d!", chunks=4),
        stream=UNCHANGED,
        whole=UNCHANGED,
        thinking=f"😀{_REPLACEMENT}!",
    ),
    Quirk(
        id="half-character-arguments",
        description="halves of a pair in pieces of the arguments",
        reply=replace(
            CALL_REPLY,
            calls=(
                ResolvedCall(id="call_a", name="look", arguments='{"at": "\ud83d\ude00\ud83d!"}'),
            ),
            chunks=30,
        ),
        stream=UNCHANGED,
        whole={"chat": UNCHANGED["chat"], "responses": UNCHANGED["responses"]},
        calls=(("look", {"at": f"😀{_REPLACEMENT}!"}),),
    ),
    Quirk(
        id="half-escape-arguments",
        description="half a pair in the arguments, escaped as JSON",
        reply=replace(
            CALL_REPLY,
            calls=(
                ResolvedCall(
                    id="call_a", name="look", arguments='{"at": "\\ud83d\\ude00 \\ud83d!"}'
                ),
            ),
            chunks=40,
        ),
        stream=UNCHANGED,
        whole={"chat": UNCHANGED["chat"], "responses": UNCHANGED["responses"]},
        calls=(("look", {"at": f"😀 {_REPLACEMENT}!"}),),
    ),
    Quirk(
        id="think-tags",
        description="thinking between `<think>` and `</think>` in the text",
        reply=replace(TEXT_REPLY, text=f"<think>{THINKING_TEXT}</think>\n\nIt is 42.", chunks=20),
        stream=UNCHANGED,
        whole=UNCHANGED,
        text="It is 42.",
        thinking=THINKING_TEXT,
    ),
    Quirk(
        id="think-tags-at-once",
        description="thinking in tags, all in one piece",
        reply=replace(TEXT_REPLY, text=f"\n<think>\n{THINKING_TEXT}</think>It is 42.", chunks=1),
        stream=UNCHANGED,
        whole=UNCHANGED,
        text="It is 42.",
        thinking=f"\n{THINKING_TEXT}",
    ),
    Quirk(
        id="other-think-tags",
        description="thinking between `[THINK]` and `[/THINK]`",
        reply=replace(TEXT_REPLY, text=f"[THINK]{THINKING_TEXT}[/THINK]It is 42.", chunks=9),
        stream=UNCHANGED,
        whole=UNCHANGED,
        text="It is 42.",
        thinking=THINKING_TEXT,
    ),
    Quirk(
        id="think-close-alone",
        description="a closing `</think>` that nothing opened",
        reply=replace(TEXT_REPLY, text=f"{THINKING_TEXT}\n</think>\n\nIt is 42.", chunks=20),
        stream=UNCHANGED,
        whole=UNCHANGED,
        text="It is 42.",
        thinking=f"{THINKING_TEXT}\n",
    ),
    Quirk(
        id="think-never-closed",
        description="`<think>` that nothing closes, and no other text",
        reply=replace(TEXT_REPLY, text="<think>It is 42.", chunks=5),
        stream=UNCHANGED,
        whole=UNCHANGED,
        text="It is 42.",
        thinking="It is 42.",
    ),
    Quirk(
        id="content-list",
        description="text as a list of parts",
        reply=replace(TEXT_REPLY, chunks=2),
        **change_everywhere("text", _split_parts),
    ),
    Quirk(
        id="content-part-unknown",
        description="parts of an unknown type beside the text",
        reply=replace(TEXT_REPLY, chunks=1),
        **change_everywhere("text", _add_unknown_part),
    ),
    Quirk(
        id="content-object",
        description="text as one part, not a list",
        reply=replace(TEXT_REPLY, chunks=2),
        **change_everywhere("text", lambda text: {"type": "text", "text": text}),
    ),
    Quirk(
        id="unknown-fields",
        description="fields that nobody knows",
        stream=dict.fromkeys(
            FORMATS,
            lambda events: [ReplyEvent(e.name, _add_unknown_fields(e.data)) for e in events],
        ),
        whole=dict.fromkeys(FORMATS, _add_unknown_fields),
    ),
    Quirk(
        id="unknown-events",
        description="events that nobody knows",
        stream=dict.fromkeys(
            FORMATS, insert_events(ReplyEvent("x.progress", {"type": "x.progress", "percent": 10}))
        ),
    ),
    Quirk(
        id="usage-in-each",
        description="the usage in each chunk: the last one counts",
        stream={form: _repeat_usage(form) for form in FORMATS},
    ),
    Quirk(
        id="usage-negative",
        description="negative numbers as usage",
        **_set_usage(read=-1, written=-1),
        usage=(0, 0),
    ),
    Quirk(
        id="usage-strings",
        description="numbers of tokens as strings",
        **_set_usage(read="40", written="7"),
    ),
    Quirk(
        id="usage-words",
        description="words as numbers of tokens",
        **_set_usage(read="many", written="few"),
        usage=(0, 0),
    ),
    Quirk(
        id="usage-float",
        description="numbers of tokens with a point",
        **_set_usage(read=40.0, written=7.0),
    ),
    Quirk(
        id="usage-huge",
        description="numbers of tokens that no request has",
        **_set_usage(read=10**12, written=10**12),
        usage=(0, 0),
    ),
    Quirk(
        id="usage-numbers-null",
        description="`null` as numbers of tokens",
        **_set_usage(read=None, written=None),
        usage=(0, 0),
    ),
    Quirk(
        id="usage-null",
        description="`usage: null`",
        **change_everywhere("usage", lambda _: None),
        usage=(0, 0),
    ),
    Quirk(
        id="usage-missing",
        description="no usage",
        **change_everywhere("usage", lambda _: DELETE),
        usage=(0, 0),
    ),
    Quirk(
        id="usage-list",
        description="a list as usage",
        **change_everywhere("usage", lambda _: [40, 7]),
        usage=(0, 0),
    ),
    Quirk(
        id="end-eos",
        description="`eos` as the reason of the end",
        **change_everywhere("end", lambda _: "eos"),
    ),
    Quirk(
        id="end-of-others",
        description="the reason of the end in another format's words",
        **change_everywhere("end", lambda _: "end_turn"),
    ),
    Quirk(
        id="end-shouted",
        description="the reason of the end in capitals",
        **change_everywhere("end", lambda _: "STOP"),
    ),
    Quirk(
        id="end-made-up",
        description="a reason of the end that nobody knows",
        **change_everywhere("end", lambda _: "brevity_achieved"),
    ),
    Quirk(
        id="end-length",
        description="the limit of output under another name",
        stream={
            f: change_in_stream("end", lambda _: "model_length")[f] for f in ("chat", "messages")
        },
        whole={f: change_in_body("end", lambda _: "model_length")[f] for f in ("chat", "messages")},
        finish="length",
    ),
    Quirk(
        id="end-calls",
        description="calls, and `stop` as the reason of the end",
        reply=CALL_REPLY,
        stream={f: change_in_stream("end", lambda _: "stop")[f] for f in ("chat", "messages")},
        whole={f: change_in_body("end", lambda _: "stop")[f] for f in ("chat", "messages")},
    ),
    Quirk(
        id="error-as-reply",
        description="status 200 and an error object",
        **_send_always(build_json_body({"error": _RATE_LIMIT_ERROR})),
        failure=("rate_limit", "for this key"),
    ),
    Quirk(
        id="error-with-number",
        description="status 200 and an error with the right status in it",
        **_send_always(build_json_body({"error": {"code": 401, "message": "No such user."}})),
        failure=("authentication", "No such user"),
    ),
    Quirk(
        id="error-in-words",
        description="status 200 and an error that is a sentence",
        **_send_always(build_json_body({"error": "The model is overloaded, come back later."})),
        failure=("overloaded", "come back later"),
    ),
    Quirk(
        id="error-overflow",
        description="status 200 and an error about the context's length",
        **_send_always(
            build_json_body({"error": {"message": "maximum context length is 8192 tokens"}})
        ),
        failure=("context_length_exceeded", "8192"),
    ),
    Quirk(
        id="error-of-vllm",
        description="status 200 and an object of type error",
        **_send_always(
            build_json_body(
                {
                    "object": "error",
                    "message": "CUDA is out of sorts",
                    "type": "InternalServerError",
                    "code": 500,
                }
            )
        ),
        failure=("server_error", "CUDA is out of sorts"),
    ),
    Quirk(
        id="error-detail",
        description="status 200 and `detail`",
        **_send_always(build_json_body({"detail": "API key is missing"})),
        failure=("authentication", "API key is missing"),
    ),
    Quirk(
        id="error-first",
        description="an error as the first event",
        stream=dict.fromkeys(
            FORMATS,
            lambda _: build_stream_body(
                [ReplyEvent(None, {"error": _RATE_LIMIT_ERROR}), ReplyEvent(None, "[DONE]")]
            ),
        ),
        failure=("rate_limit", "for this key"),
    ),
    Quirk(
        id="error-later",
        description="an error in mid stream",
        stream=dict.fromkeys(FORMATS, _insert_error),
        failure=("rate_limit", "Rate limit reached"),
    ),
)
assert DEFAULT_USAGE.input == 40
