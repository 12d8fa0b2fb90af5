"""``python -m scripts.web_types src/clew/web``: write the types of JSON-RPC for the dashboard."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from clew.distribution import VERSION
from clew.wire.openrpc import build_openrpc
from scripts.rpc_reference import list_methods

FILE_NAME: Final = "rpc_types.d.ts"
_HEAD: Final = "// Made by `python -m scripts.web_types src/clew/web`: do not edit.\n"
_DOUBLE_TEXT: Final = 'Methods["prompt.submit"]["params"]["double_text"]'
_PLAIN: Final = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean"}


def render_types() -> str:
    """Return the types of all methods, shapes and events."""
    document: dict[str, Any] = build_openrpc(VERSION, list_methods())
    schemas: dict[str, Any] = document["components"]["schemas"]
    blocks = [_render_shape(name, schema) for name, schema in sorted(schemas.items())]
    methods = "".join(_render_method(one) for one in document["methods"])
    events = [name for name in sorted(schemas) if name.endswith("Notice")]
    return "\n".join(
        (
            _HEAD,
            *blocks,
            f"export interface Methods {{\n{methods}}}\n",
            f"export type Notice = {' | '.join(events)}\n",
            f"export type DoubleText = NonNullable<{_DOUBLE_TEXT}>\n",
        )
    )


def _render_shape(name: str, schema: dict[str, Any]) -> str:
    required = set(schema.get("required", ()))
    fields = "".join(
        f"  {field}{'' if field in required else '?'}: {_render_type(told)}\n"
        for field, told in schema.get("properties", {}).items()
    )
    return f"export interface {name} {{\n{fields}}}\n"


def _render_method(method: dict[str, Any]) -> str:
    fields = "; ".join(
        f"{one['name']}{'' if one['required'] else '?'}: {_render_type(one['schema'])}"
        for one in method["params"]
    )
    result = _render_type(method["result"]["schema"])
    return f"  {json.dumps(method['name'])}: {{ params: {{ {fields} }}, result: {result} }}\n"


def _render_type(schema: dict[str, Any]) -> str:
    """Return the type of a schema."""
    if (reference := schema.get("$ref")) is not None:
        return str(reference).rpartition("/")[2]
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(one) for one in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_render_type(one) for one in schema["anyOf"]))
    kind = schema.get("type")
    if kind == "array":
        return f"Array<{_render_type(schema.get('items', {}))}>"
    if kind == "object":
        return "Record<string, any>"
    return "null" if kind == "null" else _PLAIN.get(str(kind), "any")


def main() -> None:
    """Write the file into the given folder."""
    (Path(sys.argv[1]) / FILE_NAME).write_text(render_types(), encoding="utf-8")


if __name__ == "__main__":
    main()
