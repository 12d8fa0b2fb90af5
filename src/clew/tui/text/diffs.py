"""Diffs in tool arguments and results: found, or computed from an old and a new text."""

from __future__ import annotations

import difflib
import json
import re
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from clew.tui.state.view import ToolCallView

#: Context lines of a change.
_AROUND: Final = 2
#: Argument names of the old and the new text.
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


def extract_diff(tool: ToolCallView) -> list[str]:
    """Return the lines of the unified diff that a call contains; empty if there is none."""
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
    return _diff_pair(args)


def is_diff(text: str) -> bool:
    """Return whether a text is a unified diff."""
    return bool(_HUNK.search(text) and _CHANGE.search(text))


def _diff_pair(args: dict[str, object]) -> list[str]:
    for old_name, new_name in _PAIRS:
        old, new = args.get(old_name), args.get(new_name)
        if isinstance(old, str) and isinstance(new, str) and old != new:
            lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=_AROUND)
            # Headers name files and line numbers, which are unknown here.
            return [line for line in lines if not line.startswith(("--- ", "+++ ", "@@ "))]
    return []
