"""OpenRPC document of the protocol, and the reference page made from it."""

# The page has the line width of the other pages.
# ruff: noqa: E501

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic.json_schema import models_json_schema

from clew.wire.errors import ERROR_TEXTS, ErrorCode
from clew.wire.event_models import NOTICE_TYPES
from clew.wire.framing import EVENT_METHOD, MAX_FRAME_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic import BaseModel
    from pydantic.json_schema import JsonSchemaMode

    from clew.wire.event_models import Notice
    from clew.wire.methods import AnyRpcMethod

_REF = "#/components/schemas/{model}"
#: Errors that every call can have.
COMMON_ERRORS = (
    ErrorCode.INVALID_PARAMS,
    ErrorCode.INTERNAL,
    ErrorCode.STOPPING,
    ErrorCode.UNAVAILABLE,
    ErrorCode.STORE_FULL,
    ErrorCode.STORE_FAILED,
    ErrorCode.BUSY,
)


def build_openrpc(version: str, methods: Sequence[AnyRpcMethod]) -> dict[str, Any]:
    """Return the OpenRPC document; ``x-events`` are the notifications of the server."""
    refs, schemas = models_json_schema(
        list(dict.fromkeys(_collect_models(methods))), ref_template=_REF
    )
    defs: dict[str, Any] = schemas["$defs"]
    return {
        "openrpc": "1.3.2",
        "info": {
            "title": "Clew",
            "version": version,
            "description": "JSON-RPC 2.0 over a WebSocket (/api/ws) and over pipes (clew rpc).",
        },
        "methods": [
            _method_json(method, refs[(method.result, "serialization")], defs) for method in methods
        ],
        "x-events": {
            "method": EVENT_METHOD,
            "params": {"oneOf": [refs[(notice, "serialization")] for notice in NOTICE_TYPES]},
        },
        "components": {
            "schemas": dict(sorted(defs.items())),
            "errors": {code.name: _error_json(code) for code in ErrorCode},
        },
    }


def _collect_models(
    methods: Sequence[AnyRpcMethod],
) -> Iterator[tuple[type[BaseModel], JsonSchemaMode]]:
    for method in methods:
        yield method.params, "validation"
        yield method.result, "serialization"
    for notice in NOTICE_TYPES:
        yield notice, "serialization"


def _method_json(
    method: AnyRpcMethod, result: dict[str, Any], defs: dict[str, Any]
) -> dict[str, Any]:
    shape = defs[method.params.__name__]
    required = shape.get("required", [])
    return {
        "name": method.name,
        "summary": method.summary,
        "paramStructure": "by-name",
        "params": [
            {"name": name, "required": name in required, "schema": schema}
            for name, schema in shape.get("properties", {}).items()
        ],
        "result": {"name": method.result.__name__, "schema": result},
        "errors": [
            {"$ref": f"#/components/errors/{code.name}"}
            for code in dict.fromkeys([*method.errors, *COMMON_ERRORS])
        ],
    }


def _error_json(code: ErrorCode) -> dict[str, Any]:
    return {"code": code.value, "message": ERROR_TEXTS[code][0]}


def render_document(version: str, methods: Sequence[AnyRpcMethod]) -> str:
    """Return the content of ``docs/reference/rpc.json``."""
    return json.dumps(build_openrpc(version, methods), indent=1, ensure_ascii=False) + "\n"


_PAGE_HEAD = f"""\
# JSON-RPC

<!-- Made by `python -m scripts.rpc_reference docs/reference`: do not edit. -->

Terminal UI, desktop apps and programs speak this with Clew: JSON-RPC 2.0, over a WebSocket and over pipes. The same in
a form for programs, an [OpenRPC](https://spec.open-rpc.org) document, is [rpc.json](rpc.json), and what `rpc.discover` answers.

[How to write a client](../how-to/write-a-client.md) shows it at work.

* **WebSocket**: `ws://HOST:PORT/api/ws` of `clew serve`, with `Authorization: Bearer TOKEN` where a token is set. One text
  frame is one message. A page in a browser, which can set no header, names two protocols instead: `clew.v1`, which the server
  chooses, and `bearer.` with the token in base64url without padding, which it never repeats.
* **Pipes**: `clew rpc` reads one message from each line of its input, and writes one in each line of its output. It attaches to
  the server that runs on this `CLEW_HOME`, and is one itself where none does.

A request is `{{"jsonrpc": "2.0", "id": 1, "method": "conversation.open", "params": {{"conversation": "main"}}}}`. Arguments go by
their names; unknown ones are an error. Requests run side by side: each is answered as soon as it is done. A message has at most
{MAX_FRAME_BYTES >> 20} MB. Batches are refused.
"""

_EVENTS_SECTION = """
## Events

After `events.subscribe` the server sends notifications `{"jsonrpc": "2.0", "method": "event", "params": {…}}`. Each carries
`conversation`, `session`, `seq` and `type`. `seq` is the last entry that was told, an `entry` event's own included: whoever
was cut off subscribes again with `after` set to it, and hears everything else once and in order. Text in `delta` and `snapshot` is
provisional: any later `entry` or `turn_closed` takes its place, `retracted` makes it void. A client that reads slowly never holds a
turn up: what it misses of the provisional text is in the entry.

| type | carries | what happened |
|---|---|---|
"""

_ERRORS_SECTION = """
## Errors

An error is `{"code", "message", "data": {"name", "next", "retry", "param"?}}`: a sentence for people, what to do next, and whether
sending the same again is safe and may help.

| code | name | meaning | what to do next |
|---|---|---|---|
"""


def render_page(methods: Sequence[AnyRpcMethod]) -> str:
    """Return the content of ``docs/reference/rpc.md``."""
    found = build_openrpc("", methods)
    schemas = found["components"]["schemas"]
    parts = [_PAGE_HEAD, "\n## Methods\n"]
    parts += [_method_section(method, schemas) for method in methods]
    parts += [
        "\n## Shapes\n",
        *(_model_item(name, schemas[name]) for name in _model_names(schemas, methods)),
    ]
    parts += [_EVENTS_SECTION, *map(_event_row, NOTICE_TYPES), _ERRORS_SECTION]
    parts += [
        f"| {code.value} | `{code.name.lower()}` | {ERROR_TEXTS[code][0]} | {ERROR_TEXTS[code][1]} |\n"
        for code in ErrorCode
    ]
    return "".join(parts)


def _method_section(method: AnyRpcMethod, schemas: dict[str, Any]) -> str:
    shape = schemas[method.params.__name__]
    lines = [f"\n### `{method.name}`\n\n{method.summary}\n"]
    required = shape.get("required", [])
    if properties := shape.get("properties"):
        lines.append("\n| argument | type | |\n|---|---|---|\n")
        lines += [
            _argument_row(name, one, required=name in required) for name, one in properties.items()
        ]
    lines.append(f"\nResult: `{method.result.__name__}`.")
    if method.errors:
        names = ", ".join(f"`{code.name.lower()}`" for code in method.errors)
        lines.append(f" Errors: {names}.")
    return "".join([*lines, "\n"])


def _argument_row(name: str, schema: dict[str, Any], *, required: bool) -> str:
    inner = (one.get("description", "") for one in schema.get("anyOf", ()))
    told = [schema.get("description") or next(inner, "")]
    if not required and (default := schema.get("default")) not in (None, ""):
        told.append(f"Default: `{json.dumps(default)}`.")
    mark = "" if required else "?"
    return f"| `{name}`{mark} | {_type_text(schema)} | {' '.join(filter(None, told))} |\n"


def _model_item(name: str, schema: dict[str, Any]) -> str:
    doc = _first_paragraph(schema.get("description", ""))
    fields = ", ".join(f"`{key}`: {_type_text(one)}" for key, one in schema["properties"].items())
    return f"\n* **{name}**{' (' + doc + ')' if doc else ''}: {fields}\n"


def _model_names(schemas: dict[str, Any], methods: Sequence[AnyRpcMethod]) -> Iterator[str]:
    left_out = {each.__name__ for each in (*NOTICE_TYPES, *(one.params for one in methods))}
    yield from (name for name in sorted(schemas) if name not in left_out)


def _event_row(notice: type[Notice]) -> str:
    common = {"conversation", "session", "seq", "type"}
    fields = ", ".join(f"`{name}`" for name in notice.model_fields if name not in common)
    name = notice.__name__
    doc = " ".join(_first_paragraph(notice.__doc__ or name).split())
    type_: str = notice.model_json_schema()["properties"]["type"]["const"]
    return f"| `{type_}` | {fields} | {doc} |\n"


def _first_paragraph(doc: str) -> str:
    line = " ".join(doc.strip().split("\n\n", maxsplit=1)[0].split())
    return line.rstrip(".").replace("``", "`")


def _type_text(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(_type_text(one) for one in schema["anyOf"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type_text(schema.get('items', {}))}"
    names = {"string": "text", "integer": "whole number", "number": "number", "boolean": "yes/no"}
    kind = str(schema.get("type", "any"))
    return names.get(kind, kind)
