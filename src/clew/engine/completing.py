"""What a person may mean who has begun to type: a chat command, or a file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from clew.engine.slash import COMMANDS

#: Proposals that one list shows.
MOST = 50
#: A file is named behind ``@``, which begins a word.
_FILE = re.compile(r"(?:^|\s)@(\S*)$")
_COMMAND = re.compile(r"/([A-Za-z_?]*)$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    """A text that may take the place of what was typed."""

    text: str
    #: ``command``, ``file`` or ``folder``.
    kind: str
    help: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposals:
    """What may stand from ``start`` up to the cursor."""

    start: int
    items: tuple[Proposal, ...]


def complete(text: str, folder: Path) -> Proposals:
    """
    Proposals for the end of ``text``, which is what stands before the cursor.

    Reads the folder that is meant: not for an event loop.
    """
    if found := _COMMAND.fullmatch(text):
        return Proposals(start=0, items=_commands(found[1].lower()))
    if found := _FILE.search(text):
        return Proposals(start=found.start(1), items=_files(found[1], folder))
    return Proposals(start=len(text), items=())


def _commands(begun: str) -> tuple[Proposal, ...]:
    return tuple(
        Proposal(
            text=f"/{command.name}" + (" " if command.arguments else ""),
            kind="command",
            help=f"{command.arguments} {command.help}".strip(),
        )
        for command in COMMANDS
        if any(name.startswith(begun) for name in (command.name, *command.aliases))
    )


def _files(begun: str, folder: Path) -> tuple[Proposal, ...]:
    head, slash, name = begun.rpartition("/")
    try:
        place = folder / Path(head + slash).expanduser()
        found = sorted(place.iterdir(), key=lambda path: (not path.is_dir(), path.name.lower()))
    except (OSError, RuntimeError, ValueError):
        return ()  # there is no such folder, or nobody of that name has one
    fitting = [path for path in found if _fits(path.name, name)]
    return tuple(_proposal(path, head + slash) for path in fitting[:MOST])


def _fits(name: str, begun: str) -> bool:
    hidden = name.startswith(".") and not begun.startswith(".")
    return not hidden and name.lower().startswith(begun.lower())


def _proposal(path: Path, before: str) -> Proposal:
    if path.is_dir():
        return Proposal(text=f"{before}{path.name}/", kind="folder")
    return Proposal(text=f"{before}{path.name}", kind="file")
