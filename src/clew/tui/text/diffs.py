"""Diffs in what tools are given and give back: found, or made of an old and a new text."""

from __future__ import annotations

import difflib
import json
import re
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from clew.tui.state.view import Tool

#: Lines around a change.
_AROUND: Final = 2
#: How tools call the text that goes and the text that comes.
_PAIRS: Final = (
    ("old_string", "new_string"),
    ("old_str", "new_str"),
    ("old_text", "new_text"),
    ("old", "new"),
    ("before", "after"),
    ("search", "replace"),
)
_HUNK: Final = re.compile(r"^@@ .*@@", re.MULTILINE)
_CHANGE: Final = re.compile(r"^[+-](?![+-]{2} )", re.MULTILINE)


def diff_of(tool: Tool) -> list[str]:
    """Return the lines of a diff that a call shows, in the unified form; none if it shows none."""
    if is_diff(tool.result):
        return tool.result.splitlines()
    try:
        found: object = json.loads(tool.args)
    except ValueError:
        return []
    if not isinstance(found, dict):
        return []
    args = cast("dict[str, object]", found)
    for value in args.values():
        if isinstance(value, str) and is_diff(value):
            return value.splitlines()
    return _of_pair(args)


def is_diff(text: str) -> bool:
    """Whether a text is a diff in the unified form."""
    return bool(_HUNK.search(text) and _CHANGE.search(text))


def _of_pair(args: dict[str, object]) -> list[str]:
    for old_name, new_name in _PAIRS:
        old, new = args.get(old_name), args.get(new_name)
        if isinstance(old, str) and isinstance(new, str) and old != new:
            lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=_AROUND)
            # What stands before the first change names files and places, which nobody knows here.
            return [line for line in lines if not line.startswith(("--- ", "+++ ", "@@ "))]
    return []
