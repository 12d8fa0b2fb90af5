"""
The file tools, as the model sees them.

Every command declares them and few call them, so they import what they need when they run.
"""

# ruff: noqa: PLC0415

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.plugin import ToolFacts


async def read_file(path: str, line: int = 1, lines: int = 2000) -> str:
    """Read a text file, PDF, docx or xlsx of the workspace, from a line on."""
    from clew.features.files import reading
    from clew.features.files.turn_workspace import locate

    return await reading.read_lines(locate(path), line=line, lines=lines)


def list_files(path: str = ".", names: str = "*", recursive: bool = False) -> str:
    """List a folder; ``names`` is a glob."""
    from clew.features.files import listing
    from clew.features.files.restrictions import find_restriction
    from clew.features.files.turn_workspace import locate

    place = locate(path)
    hidden = find_restriction("list_files", place)
    return listing.list_folder(place, names=names, recursive=recursive, is_hidden=hidden)


async def search_files(pattern: str, path: str = ".", names: str = "*") -> str:
    """Find the lines of files that match a regular expression; ``names`` is a glob."""
    from clew.features.files import searching
    from clew.features.files.restrictions import find_restriction
    from clew.features.files.turn_workspace import locate

    place = locate(path)
    hidden = find_restriction("search_files", place)
    return await searching.search_lines(place, pattern, names=names, is_hidden=hidden)


async def write_file(path: str, content: str) -> str:
    """Create or replace a text file, and the folders above it."""
    from clew.features.files import writing

    return await writing.write_text(path, content)


async def edit_file(path: str, old: str, new: str, every: bool = False) -> str:
    """Replace ``old``, which occurs once (or ``every`` time), exactly as it is in the file."""
    from clew.features.files import writing

    return await writing.edit_text(path, old, new, every=every)


async def send_file(path: str, caption: str = "", name: str = "") -> str:
    """Send a file of the workspace, or a stored one (att_…), with your answer."""
    from clew.features.files import sending

    return await sending.send(path, caption=caption, name=name)


def make_send_facts(args: Mapping[str, Any]) -> ToolFacts:
    """Return the facts about a call that sends: the file that it reads."""
    from clew.features.files import facts

    return facts.make_send_facts(args)


def make_read_facts(args: Mapping[str, Any]) -> ToolFacts:
    """Return the facts about a call that reads."""
    from clew.features.files import facts

    return facts.make_read_facts(args)


def make_list_facts(args: Mapping[str, Any]) -> ToolFacts:
    """Return the facts about a call that lists."""
    from clew.features.files import facts

    return facts.make_list_facts(args)


def make_search_facts(args: Mapping[str, Any]) -> ToolFacts:
    """Return the facts about a call that searches."""
    from clew.features.files import facts

    return facts.make_search_facts(args)


def make_write_facts(args: Mapping[str, Any]) -> ToolFacts:
    """Return the facts about a call that writes: the file, and the diff."""
    from clew.features.files import facts

    return facts.make_write_facts(args)
