"""Write the reference of the public Python names, from their docstrings: ``FILE``."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import clew

_HEAD = """\
# Python

The names that `import clew` offers; everything else may change. Each is imported when it is first
used. [Use Clew as a library](../how-to/use-clew-as-a-library.md) shows how they work together,
[plugin](plugin.md) has the names of `clew.plugin`.
"""


def render_reference() -> str:
    """Return the page."""
    names = [name for name in clew.__all__ if name != "__version__"]
    parts = [_HEAD, *(_describe(name, getattr(clew, name)) for name in names)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts))


def _describe(name: str, value: Any) -> str:
    lines = [f"## `{name}`", ""]
    if not callable(value):
        return "\n".join([*lines, "A marker of `pluggy`.", ""])
    if not isinstance(value, type) or value.__doc__ is None:
        lines += ["```python", _format_signature(name, value), "```", ""]
    lines += [_format_docstring(value), ""]
    if isinstance(value, type):
        lines += _list_members(value)
    return "\n".join(lines)


def _list_members(value: type) -> list[str]:
    """Return the methods and properties that a class itself documents."""
    lines = _list_fields(value)
    for name, member in sorted(_public_members(value).items()):
        plain: Any = getattr(member, "__func__", member)
        if isinstance(plain, property):
            lines += [f"### `{value.__name__}.{name}`", "", _format_docstring(plain), ""]
        elif inspect.isfunction(plain) and plain.__doc__:
            signature = _format_signature(name, plain)
            lines += [f"### `{value.__name__}.{name}()`", "", "```python", signature, "```", ""]
            lines += [_format_docstring(plain), ""]
    return lines


def _list_fields(value: type) -> list[str]:
    """Return the fields of a record, with their types."""
    fields: tuple[str, ...] = getattr(value, "__struct_fields__", ())
    types = {name: one for base in reversed(value.__mro__) for name, one in _annotations(base)}
    rows = [f"| `{name}` | `{types[name].replace('|', 'or')}` |" for name in fields]
    return ["| field | type |", "|---|---|", *rows, ""] if rows else []


def _annotations(base: type) -> list[tuple[str, str]]:
    return [(name, str(one)) for name, one in vars(base).get("__annotations__", {}).items()]


def _public_members(value: type) -> dict[str, Any]:
    """Return the members of a class and of its bases in this project."""
    found: dict[str, Any] = {}
    for base in reversed(value.__mro__):
        if base.__module__.startswith("clew.") and base.__module__ != "clew.record":
            found |= {name: one for name, one in vars(base).items() if not name.startswith("_")}
    return found


def _format_signature(name: str, value: Any) -> str:
    start = "async def" if inspect.iscoroutinefunction(value) else "def"
    try:
        text = str(inspect.signature(value))
    except ValueError:
        text = "(...)"
    # Annotations are kept as they are written.
    text = (
        re.sub(r"(: |-> )(['\"])(.*?)\2", r"\1\3", text)
        .replace("(self, ", "(")
        .replace("(self)", "()")
    )
    text = re.sub(r"<[^>]*>", "...", text)
    return f"{start} {name}{text}"


def _format_docstring(value: Any) -> str:
    text = inspect.cleandoc(value.__doc__ or "").replace("``", "`")
    return re.sub(r":raises (\S+):", r"\n*Raises* `\1`:", re.sub(":return:", "\n*Returns*", text))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render_reference(), encoding="utf-8")
