"""Quirks that all three formats have: characters, thinking, usage, endings, odd content."""

# JSON of any shape is what this table is made of.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from clew.testing.provider.answers import Invocation
from clew.testing.provider.quirks.quirk import (
    CALL,
    FORMATS,
    RENDERERS,
    TEXT,
    TWO_CALLS,
    USAGE,
    Body,
    Event,
    Quirk,
    json_body,
    stream_body,
)

if TYPE_CHECKING:
    from clew.testing.provider.quirks.quirk import Streamed, Whole
    from clew.testing.provider.request import Format

Change = Callable[[Any], Any]
SAME: Final[dict[Any, Any]] = dict.fromkeys(FORMATS, lambda reply: reply)
#: What each format calls the ends of a reply.
_ENDS = {"chat": "finish_reason", "responses": "status", "messages": "stop_reason"}
THOUGHT = "Two and forty, then."


def holders(form: Format, data: Any, what: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each place of a thing in an event or a reply: the object, and the key in it."""
    if isinstance(data, dict):
        yield from _PLACES[form](data, what)


def _chat(data: dict[str, Any], what: str) -> Iterator[tuple[dict[str, Any], str]]:
    if what == "usage":
        yield data, "usage"
    for choice in data.get("choices") or ():
        said = choice.get("delta") or choice.get("message") or {}
        if what == "end" and choice.get("finish_reason") is not None:
            yield choice, "finish_reason"
        elif what == "text" and said.get("content"):
            yield said, "content"


def _responses(data: dict[str, Any], what: str) -> Iterator[tuple[dict[str, Any], str]]:
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


def _messages(data: dict[str, Any], what: str) -> Iterator[tuple[dict[str, Any], str]]:
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


_PLACES = {"chat": _chat, "responses": _responses, "messages": _messages}


def changed(form: Format, what: str, change: Change) -> Change:
    """Return what changes each occurrence of a thing in a reply; deletes it for ``DELETE``."""

    def one(data: Any) -> Any:
        data = copy.deepcopy(data)
        for holder, key in list(holders(form, data, what)):
            holder[key] = change(holder.get(key))
            if holder[key] is DELETE:
                del holder[key]
        return data

    return one


DELETE: Final = object()


def streamed(what: str, change: Change) -> dict[Any, Streamed]:
    """Change a thing in each event, for all formats."""

    def made(form: Format) -> Streamed:
        one = changed(form, what, change)
        return lambda events: [Event(event.name, one(event.data)) for event in events]

    return {form: made(form) for form in FORMATS}


def whole(what: str, change: Change) -> dict[Any, Whole]:
    """Change a thing in a whole reply, for all formats."""
    return {form: changed(form, what, change) for form in FORMATS}


def both(what: str, change: Change) -> dict[str, Any]:
    """Change a thing in streams and in whole replies."""
    return {"stream": streamed(what, change), "whole": whole(what, change)}


def _usage(*, read: object, written: object) -> dict[str, Any]:
    """A usage with such numbers, whatever the format calls them."""

    def change(usage: Any) -> Any:
        if not isinstance(usage, dict):
            return usage
        names = {"prompt_tokens": read, "input_tokens": read}
        names |= {"completion_tokens": written, "output_tokens": written}
        return {key: names.get(key, value) for key, value in usage.items()}

    return both("usage", change)


def _in_each(form: Format) -> Streamed:
    def change(events: list[Event]) -> list[Event]:
        last = next(
            holder[key]
            for event in reversed(events)
            for holder, key in holders(form, event.data, "usage")
            if holder.get(key)
        )
        return [Event(e.name, _with_usage(form, e.data, last)) for e in events]

    return change


def _with_usage(form: Format, data: Any, usage: Any) -> Any:
    if not isinstance(data, dict):
        return data
    data = copy.deepcopy(data)
    if form == "responses":
        for holder, key in holders(form, data, "usage"):
            holder[key] = usage
        return data
    if form == "messages" and data["type"] == "message_start":
        data["message"]["usage"] |= usage
        return data
    return {**data, "usage": usage}


def _parts(text: Any) -> Any:
    return [{"type": "text", "text": piece} for piece in (text[:3], text[3:]) if piece]


def _with_unknown_part(text: Any) -> Any:
    return [{"type": "text", "text": text}, {"type": "hologram", "data": "AAAA"}]


def _unknown_fields(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    return {**data, "x_trace": {"id": 7, "spans": [1, 2]}, "cost": "0.001", "obfuscation": "aQz"}


def _between(*events: Event) -> Streamed:
    return lambda given: [e for one in given[:-1] for e in (one, *events)] + given[-1:]


def _plain(form: Format, reply: Any = TEXT) -> Streamed:
    return lambda _: json_body(RENDERERS[form].body(reply))


def _each_way(body: Body) -> dict[str, Any]:
    return {
        "stream": dict.fromkeys(FORMATS, lambda _: body),
        "whole": dict.fromkeys(FORMATS, lambda _: body),
    }


def _then_error(events: list[Event]) -> Body:
    error = {"error": {"message": "Rate limit reached, wait.", "code": 429}}
    half = len(events) // 2
    return stream_body([*events[: half + 1], Event(None, error)])


_LIMIT = {"message": "Rate limit reached for this key.", "type": "rate_limit_exceeded"}
_MENDED = "\N{REPLACEMENT CHARACTER}"
_HALF = "\ud83d"

SHAPES: tuple[Quirk, ...] = (
    Quirk(id="plain", sends="a proper reply", stream=SAME, whole=SAME),
    Quirk(
        id="plain-calls",
        sends="a proper reply with two calls",
        answer=TWO_CALLS,
        stream=SAME,
        whole=SAME,
    ),
    Quirk(
        id="plain-to-stream",
        sends="one JSON object although a stream was asked for",
        stream={form: _plain(form) for form in FORMATS},
    ),
    Quirk(
        id="plain-calls-to-stream",
        sends="one JSON object with calls instead of a stream",
        answer=TWO_CALLS,
        stream={form: _plain(form, TWO_CALLS) for form in FORMATS},
    ),
    Quirk(
        id="half-character",
        sends="half a surrogate pair in the text",
        answer=replace(TEXT, text=f"An{_HALF}swer", chunks=4),
        stream=SAME,
        whole=SAME,
        text=f"An{_MENDED}swer",
    ),
    Quirk(
        id="half-character-last",
        sends="half a surrogate pair at the very end",
        answer=replace(TEXT, text=f"Answer{_HALF}", chunks=4),
        stream=SAME,
        whole=SAME,
        text=f"Answer{_MENDED}",
    ),
    Quirk(
        id="pair-in-two",
        sends="a surrogate pair in two pieces of the text",
        answer=replace(TEXT, text="\ud83d\ude00", chunks=2),
        stream=SAME,
        whole=SAME,
        text="😀",
    ),
    Quirk(
        id="half-character-thinking",
        sends="halves of a pair in two pieces of the thinking",
        answer=replace(TEXT, thinking="\ud83d\ude00\ud83d!", chunks=4),
        stream=SAME,
        whole=SAME,
        thinking=f"😀{_MENDED}!",
    ),
    Quirk(
        id="half-character-arguments",
        sends="halves of a pair in pieces of the arguments",
        answer=replace(
            CALL,
            calls=(
                Invocation(id="call_a", name="look", arguments='{"at": "\ud83d\ude00\ud83d!"}'),
            ),
            chunks=30,
        ),
        stream=SAME,
        whole={"chat": SAME["chat"], "responses": SAME["responses"]},
        calls=(("look", {"at": f"😀{_MENDED}!"}),),
    ),
    Quirk(
        id="half-escape-arguments",
        sends="half a pair in the arguments, escaped as JSON",
        answer=replace(
            CALL,
            calls=(
                Invocation(id="call_a", name="look", arguments='{"at": "\\ud83d\\ude00 \\ud83d!"}'),
            ),
            chunks=40,
        ),
        stream=SAME,
        whole={"chat": SAME["chat"], "responses": SAME["responses"]},
        calls=(("look", {"at": f"😀 {_MENDED}!"}),),
    ),
    Quirk(
        id="think-tags",
        sends="thinking between `<think>` and `</think>` in the text",
        answer=replace(TEXT, text=f"<think>{THOUGHT}</think>\n\nIt is 42.", chunks=20),
        stream=SAME,
        whole=SAME,
        text="It is 42.",
        thinking=THOUGHT,
    ),
    Quirk(
        id="think-tags-at-once",
        sends="thinking in tags, all in one piece",
        answer=replace(TEXT, text=f"\n<think>\n{THOUGHT}</think>It is 42.", chunks=1),
        stream=SAME,
        whole=SAME,
        text="It is 42.",
        thinking=f"\n{THOUGHT}",
    ),
    Quirk(
        id="other-think-tags",
        sends="thinking between `[THINK]` and `[/THINK]`",
        answer=replace(TEXT, text=f"[THINK]{THOUGHT}[/THINK]It is 42.", chunks=9),
        stream=SAME,
        whole=SAME,
        text="It is 42.",
        thinking=THOUGHT,
    ),
    Quirk(
        id="think-close-alone",
        sends="a closing `</think>` that nothing opened",
        answer=replace(TEXT, text=f"{THOUGHT}\n</think>\n\nIt is 42.", chunks=20),
        stream=SAME,
        whole=SAME,
        text="It is 42.",
        thinking=f"{THOUGHT}\n",
    ),
    Quirk(
        id="think-never-closed",
        sends="`<think>` that nothing closes, and no other text",
        answer=replace(TEXT, text="<think>It is 42.", chunks=5),
        stream=SAME,
        whole=SAME,
        text="It is 42.",
        thinking="It is 42.",
    ),
    Quirk(
        id="content-list",
        sends="text as a list of parts",
        answer=replace(TEXT, chunks=2),
        **both("text", _parts),
    ),
    Quirk(
        id="content-part-unknown",
        sends="parts of an unknown type beside the text",
        answer=replace(TEXT, chunks=1),
        **both("text", _with_unknown_part),
    ),
    Quirk(
        id="content-object",
        sends="text as one part, not a list",
        answer=replace(TEXT, chunks=2),
        **both("text", lambda text: {"type": "text", "text": text}),
    ),
    Quirk(
        id="unknown-fields",
        sends="fields that nobody knows",
        stream=dict.fromkeys(
            FORMATS, lambda events: [Event(e.name, _unknown_fields(e.data)) for e in events]
        ),
        whole=dict.fromkeys(FORMATS, _unknown_fields),
    ),
    Quirk(
        id="unknown-events",
        sends="events that nobody knows",
        stream=dict.fromkeys(
            FORMATS, _between(Event("x.progress", {"type": "x.progress", "percent": 10}))
        ),
    ),
    Quirk(
        id="usage-in-each",
        sends="the usage in each chunk: the last one counts",
        stream={form: _in_each(form) for form in FORMATS},
    ),
    Quirk(
        id="usage-negative",
        sends="negative numbers as usage",
        **_usage(read=-1, written=-1),
        usage=(0, 0),
    ),
    Quirk(
        id="usage-strings", sends="numbers of tokens as strings", **_usage(read="40", written="7")
    ),
    Quirk(
        id="usage-words",
        sends="words as numbers of tokens",
        **_usage(read="many", written="few"),
        usage=(0, 0),
    ),
    Quirk(
        id="usage-float", sends="numbers of tokens with a point", **_usage(read=40.0, written=7.0)
    ),
    Quirk(
        id="usage-huge",
        sends="numbers of tokens that no request has",
        **_usage(read=10**12, written=10**12),
        usage=(0, 0),
    ),
    Quirk(
        id="usage-numbers-null",
        sends="`null` as numbers of tokens",
        **_usage(read=None, written=None),
        usage=(0, 0),
    ),
    Quirk(id="usage-null", sends="`usage: null`", **both("usage", lambda _: None), usage=(0, 0)),
    Quirk(id="usage-missing", sends="no usage", **both("usage", lambda _: DELETE), usage=(0, 0)),
    Quirk(
        id="usage-list", sends="a list as usage", **both("usage", lambda _: [40, 7]), usage=(0, 0)
    ),
    Quirk(id="end-eos", sends="`eos` as the reason of the end", **both("end", lambda _: "eos")),
    Quirk(
        id="end-of-others",
        sends="the reason of the end in another format's words",
        **both("end", lambda _: "end_turn"),
    ),
    Quirk(
        id="end-shouted", sends="the reason of the end in capitals", **both("end", lambda _: "STOP")
    ),
    Quirk(
        id="end-made-up",
        sends="a reason of the end that nobody knows",
        **both("end", lambda _: "brevity_achieved"),
    ),
    Quirk(
        id="end-length",
        sends="the limit of output under another name",
        stream={f: streamed("end", lambda _: "model_length")[f] for f in ("chat", "messages")},
        whole={f: whole("end", lambda _: "model_length")[f] for f in ("chat", "messages")},
        finish="length",
    ),
    Quirk(
        id="end-calls",
        sends="calls, and `stop` as the reason of the end",
        answer=CALL,
        stream={f: streamed("end", lambda _: "stop")[f] for f in ("chat", "messages")},
        whole={f: whole("end", lambda _: "stop")[f] for f in ("chat", "messages")},
    ),
    Quirk(
        id="error-as-reply",
        sends="status 200 and an error object",
        **_each_way(json_body({"error": _LIMIT})),
        failure=("rate_limit", "for this key"),
    ),
    Quirk(
        id="error-with-number",
        sends="status 200 and an error with the right status in it",
        **_each_way(json_body({"error": {"code": 401, "message": "No such user."}})),
        failure=("authentication", "No such user"),
    ),
    Quirk(
        id="error-in-words",
        sends="status 200 and an error that is a sentence",
        **_each_way(json_body({"error": "The model is overloaded, come back later."})),
        failure=("overloaded", "come back later"),
    ),
    Quirk(
        id="error-overflow",
        sends="status 200 and an error about the context's length",
        **_each_way(json_body({"error": {"message": "maximum context length is 8192 tokens"}})),
        failure=("context_length_exceeded", "8192"),
    ),
    Quirk(
        id="error-of-vllm",
        sends="status 200 and an object of type error",
        **_each_way(
            json_body(
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
        sends="status 200 and `detail`",
        **_each_way(json_body({"detail": "API key is missing"})),
        failure=("authentication", "API key is missing"),
    ),
    Quirk(
        id="error-first",
        sends="an error as the first event",
        stream=dict.fromkeys(
            FORMATS, lambda _: stream_body([Event(None, {"error": _LIMIT}), Event(None, "[DONE]")])
        ),
        failure=("rate_limit", "for this key"),
    ),
    Quirk(
        id="error-later",
        sends="an error in mid stream",
        stream=dict.fromkeys(FORMATS, _then_error),
        failure=("rate_limit", "Rate limit reached"),
    ),
)
assert USAGE.input == 40
