"""Extraction of text and thinking from content of any shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from clew.agent.tolerant.thinking import ContentSegment

if TYPE_CHECKING:
    from clew.agent.tolerant.unknowns import UnknownReporter

__all__ = ["dict_or_empty", "extract_all_text", "extract_segments"]

_THINKING_KINDS = frozenset({"thinking", "reasoning", "reasoning_text", "summary_text"})
_TEXT_FIELDS = ("text", "content", "thinking", "reasoning", "summary", "refusal")


def dict_or_empty(value: object) -> dict[str, Any]:
    """Return the object, or an empty one if the value is not one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def extract_all_text(value: object, note: UnknownReporter) -> str:
    """Return the text in content of any shape, including thinking."""
    return "".join(said.text for said in extract_segments(value, note))


def extract_segments(
    value: object, note: UnknownReporter, *, kind: str = "text"
) -> list[ContentSegment]:
    """Return the segments in content of any shape, in order."""
    match value:
        case None | bool():
            return []
        case str():
            return (
                [ContentSegment("thinking" if kind in _THINKING_KINDS else "text", value)]
                if value
                else []
            )
        case int() | float():
            return extract_segments(str(value), note, kind=kind)
        case list():
            items = cast("list[object]", value)
            return [said for item in items for said in extract_segments(item, note, kind=kind)]
        case dict():
            return _extract_part_segments(cast("dict[str, Any]", value), note, kind)
        case _:
            return []


def _extract_part_segments(
    part: dict[str, Any], note: UnknownReporter, outer: str
) -> list[ContentSegment]:
    kind = part.get("type")
    own = outer if outer in _THINKING_KINDS else kind if isinstance(kind, str) else outer
    for name in _TEXT_FIELDS:
        if part.get(name) is not None:
            return extract_segments(part[name], note, kind=name if name in _THINKING_KINDS else own)
    if kind not in ("text", "output_text"):
        note("content_part", str(kind))
    return []
