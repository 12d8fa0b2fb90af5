"""Completion of typed text: chat commands and file names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from clew.record import Record

if TYPE_CHECKING:
    from clew.commands.registry import CommandRegistry

#: Suggestions per list.
MAX_SUGGESTIONS = 50
#: A file name follows an ``@`` at the start of a word.
_FILE_PATTERN = re.compile(r"(?:^|\s)@(\S*)$")
_COMMAND_PATTERN = re.compile(r"/([A-Za-z_?]*)$")


class Suggestion(Record):
    """A text that can replace the typed one."""

    text: str
    #: ``command``, ``file`` or ``folder``.
    kind: str
    help: str = ""


class SuggestionList(Record):
    """The suggestions for the text from ``start`` up to the cursor."""

    start: int
    items: tuple[Suggestion, ...]


def complete_input(text: str, folder: Path, commands: CommandRegistry) -> SuggestionList:
    """
    Return suggestions for the end of ``text``, which ends at the cursor.

    Reads a folder from disk: not for an event loop.
    """
    if found := _COMMAND_PATTERN.fullmatch(text):
        return SuggestionList(start=0, items=_suggest_commands(found[1].lower(), commands))
    if found := _FILE_PATTERN.search(text):
        return SuggestionList(start=found.start(1), items=_suggest_files(found[1], folder))
    return SuggestionList(start=len(text), items=())


def _suggest_commands(begun: str, commands: CommandRegistry) -> tuple[Suggestion, ...]:
    return tuple(
        Suggestion(
            text=f"/{command.name}" + (" " if command.arguments else ""),
            kind="command",
            help=f"{command.arguments} {command.help}".strip(),
        )
        for command in commands.commands
        if any(name.startswith(begun) for name in (command.name, *command.aliases))
    )


def _suggest_files(begun: str, folder: Path) -> tuple[Suggestion, ...]:
    head, slash, name = begun.rpartition("/")
    try:
        place = folder / Path(head + slash).expanduser()
        found = sorted(place.iterdir(), key=lambda path: (not path.is_dir(), path.name.lower()))
    except (OSError, RuntimeError, ValueError):
        return ()  # no such folder, or an unknown user in ``~user``
    fitting = [path for path in found if _matches_prefix(path.name, name)]
    return tuple(_build_suggestion(path, head + slash) for path in fitting[:MAX_SUGGESTIONS])


def _matches_prefix(name: str, begun: str) -> bool:
    hidden = name.startswith(".") and not begun.startswith(".")
    return not hidden and name.lower().startswith(begun.lower())


def _build_suggestion(path: Path, before: str) -> Suggestion:
    if path.is_dir():
        return Suggestion(text=f"{before}{path.name}/", kind="folder")
    return Suggestion(text=f"{before}{path.name}", kind="file")
