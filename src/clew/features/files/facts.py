"""The facts by which a call of a file tool is allowed."""

from __future__ import annotations

import difflib
import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from clew.features.files.editing import encode_text, replace_text
from clew.features.files.reading import decode_text
from clew.features.files.sending import is_attachment
from clew.features.files.turn_workspace import get_workspace, locate, normalize_path
from clew.features.files.writing import read_content
from clew.plugin import PathFact, ToolFacts
from clew.record import replace
from clew.sandbox.changed_files import holds_received_file
from clew.sandbox.errors import FileRefused, PathLeadsElsewhere

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal, TypeAlias

    Extent: TypeAlias = Literal["file", "folder", "tree"]


def make_read_facts(args: Mapping[str, Any]) -> ToolFacts:
    """Return the file that a call reads."""
    return _make_facts(args, extent="file")


def make_send_facts(args: Mapping[str, Any]) -> ToolFacts:
    """Return the file that a call sends: people of the chat see it as they see the answer."""
    if is_attachment(str(args.get("path", ""))):
        return ToolFacts(internal=True)
    return replace(_make_facts(args, extent="file"), untrusted_result=False)


def make_list_facts(args: Mapping[str, Any]) -> ToolFacts:
    """Return the folder that a call lists."""
    return _make_facts(args, extent="tree" if args.get("recursive") else "folder")


def make_search_facts(args: Mapping[str, Any]) -> ToolFacts:
    """Return the folder that a call searches, with everything below it."""
    return _make_facts(args, extent="tree")


def _make_facts(args: Mapping[str, Any], *, extent: Extent) -> ToolFacts:
    fact = replace(_make_path_fact(str(args.get("path", ".")), extent=extent), leaves_out=True)
    if fact.inside and os.path.isfile(fact.path):  # noqa: PTH113  (a long name is none)
        fact = replace(fact, extent="file")
    received = holds_received_file([fact], str(get_workspace().root))
    return ToolFacts(paths=(fact,), untrusted_result=received)


def make_write_facts(args: Mapping[str, Any]) -> ToolFacts:
    """Return the file that a call writes, the number of bytes, and the diff."""
    path = str(args["path"])
    size, preview = None, None
    with suppress(FileRefused):  # the call itself tells why
        place = locate(path)
        before = read_content(place.workspace, place.path)
        after = _make_content(path, before or b"", args)
        # Comparing large files takes seconds, and most calls need no approval.
        size, preview = len(after), partial(_describe_difference, path, before, after)
    fact = replace(_make_path_fact(path, writes=True), replaces="content" in args)
    return ToolFacts(paths=(fact,), size=size, preview=preview)


def _describe_difference(path: str, before: bytes | None, after: bytes) -> str | None:
    with suppress(FileRefused):  # one of them is not text
        return make_diff(path, before, after)
    return None


def _make_path_fact(path: str, *, writes: bool = False, extent: Extent = "file") -> PathFact:
    """Return the location of a path; one that is refused by its text counts as inside."""
    try:
        place = locate(path)
    except PathLeadsElsewhere:
        # The link may be gone when the call runs.
        found, inside = str(normalize_path(path)), False
    except FileRefused:
        found, inside = path, True
    else:
        found, inside = os.path.realpath(place.workspace.root / place.path), place.is_inside
    return PathFact(path=found, inside=inside, writes=writes, extent=extent)


def _make_content(path: str, before: bytes, args: Mapping[str, Any]) -> bytes:
    if "content" in args:
        return encode_text(str(args["content"]))
    every = bool(args.get("every", False))
    return replace_text(path, before, str(args["old"]), str(args["new"]), every=every)


def make_diff(path: str, before: bytes | None, after: bytes) -> str:
    """
    Return the whole change as a unified diff.

    :raises FileRefused: if one of them is not text
    """
    old, new = (decode_text(path, one or b"").text.splitlines(True) for one in (before, after))
    lines = difflib.unified_diff(
        old, new, "/dev/null" if before is None else f"a/{path}", f"b/{path}"
    )
    return "".join(one if one.endswith("\n") else f"{one}\n" for one in lines)
