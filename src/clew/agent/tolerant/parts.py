"""Content of any shape as text and thinking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from clew.agent.tolerant.thinking import Said

if TYPE_CHECKING:
    from clew.agent.tolerant.notes import Note

__all__ = ["dict_of", "said_in", "text_in"]

_THINKING = frozenset({"thinking", "reasoning", "reasoning_text", "summary_text"})
_TEXT = ("text", "content", "thinking", "reasoning", "summary", "refusal")


def dict_of(value: object) -> dict[str, Any]:
    """Return the object, or an empty one where the value is none."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def text_in(value: object, note: Note) -> str:
    """Return the words in content of any shape, whether text or thinking."""
    return "".join(said.text for said in said_in(value, note))


def said_in(value: object, note: Note, *, kind: str = "text") -> list[Said]:
    """Return what content of any shape says, in order."""
    match value:
        case None | bool():
            return []
        case str():
            return [Said("thinking" if kind in _THINKING else "text", value)] if value else []
        case int() | float():
            return said_in(str(value), note, kind=kind)
        case list():
            items = cast("list[object]", value)
            return [said for item in items for said in said_in(item, note, kind=kind)]
        case dict():
            return _part(cast("dict[str, Any]", value), note, kind)
        case _:
            return []


def _part(part: dict[str, Any], note: Note, outer: str) -> list[Said]:
    kind = part.get("type")
    own = outer if outer in _THINKING else kind if isinstance(kind, str) else outer
    for name in _TEXT:
        if part.get(name) is not None:
            return said_in(part[name], note, kind=name if name in _THINKING else own)
    if kind not in ("text", "output_text"):
        note("content_part", str(kind))
    return []
