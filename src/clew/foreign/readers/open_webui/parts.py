"""Parts of an answer of Open WebUI: texts, thoughts, calls and results in their order."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Any, Final, Literal

from clew.core.payload import as_list, as_object, as_text
from clew.foreign.chat_messages import read_content
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_BLOCK: Final = re.compile(r"<details\b([^>]*)>(.*?)</details>\n?", re.DOTALL)
_ATTRIBUTE: Final = re.compile(r'([\w-]+)="([^"]*)"')
_SUMMARY: Final = re.compile(r"\s*<summary>.*?</summary>", re.DOTALL)
_CODE: Final = re.compile(r"```\w*\n(.*?)\n?```", re.DOTALL)
_QUOTE: Final = re.compile(r"^> ?", re.MULTILINE)
_INTERPRETER: Final = "code_interpreter"


class ReplyFragment(Record):
    """One part."""

    kind: Literal["text", "reasoning", "call", "result"]
    text: str
    #: Of a call or its result.
    call: str = ""
    name: str = ""


def read_output(items: object) -> Iterator[ReplyFragment]:
    """Yield the parts of ``output``, whose items are those of the Responses API."""
    for number, one in enumerate(as_list(items)):
        item = as_object(one)
        call = as_text(item.get("call_id") or item.get("id")) or f"call-{number}"
        match item.get("type"):
            case "message":
                yield ReplyFragment(kind="text", text=read_content(item.get("content")))
            case "reasoning":
                told = as_list(item.get("summary")) or as_list(item.get("content"))
                yield ReplyFragment(kind="reasoning", text=read_content(told))
            case "function_call":
                name, text = as_text(item.get("name")), _as_text(item.get("arguments"))
                yield ReplyFragment(kind="call", text=text, call=call, name=name)
            case "function_call_output":
                yield ReplyFragment(kind="result", text=_as_text(item.get("output")), call=call)
            case kind if isinstance(kind, str) and kind.endswith(_INTERPRETER):
                yield from _read_code(as_text(item.get("code")), item.get("output"), call)
            case _:
                pass


def _read_code(code: str, output: object, call: str) -> Iterator[ReplyFragment]:
    yield ReplyFragment(kind="call", text=json.dumps({"code": code}), call=call, name=_INTERPRETER)
    if output is not None:
        yield ReplyFragment(kind="result", text=_as_text(output), call=call)


def _as_text(value: object) -> str:
    text = read_content(value)
    return text if text or value in (None, "", []) else json.dumps(value)


def read_text(text: str) -> Iterator[ReplyFragment]:
    """Yield the parts of a text with ``<details>`` blocks."""
    at = 0
    for number, block in enumerate(_BLOCK.finditer(text)):
        told = {key: html.unescape(value) for key, value in _ATTRIBUTE.findall(block[1])}
        if told.get("type") not in ("tool_calls", "reasoning", _INTERPRETER):
            continue
        yield ReplyFragment(kind="text", text=text[at : block.start()].strip())
        at = block.end()
        yield from _read_block(told, _SUMMARY.sub("", block[2], count=1).strip(), number)
    yield ReplyFragment(kind="text", text=text[at:].strip() if at else text)


def _read_block(told: Mapping[str, str], body: str, number: int) -> Iterator[ReplyFragment]:
    call = told.get("id") or f"call-{number}"
    if told["type"] == "reasoning":
        yield ReplyFragment(kind="reasoning", text=_QUOTE.sub("", html.unescape(body)))
    elif told["type"] == "tool_calls":
        arguments = _parse(told.get("arguments", ""))
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        yield ReplyFragment(kind="call", text=text, call=call, name=told.get("name", ""))
        if "result" in told or told.get("done") == "true":
            result = _parse(told.get("result", "")) if "result" in told else body
            yield ReplyFragment(kind="result", text=_as_text(result), call=call)
    else:
        code = _CODE.search(body)
        output = _parse(told["output"]) if told.get("output") else None
        yield from _read_code(code[1] if code else body, output, call)


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
