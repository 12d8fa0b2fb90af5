"""Programs that take instructions from files of the folder that they run in."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.command_shape import ParsedCommand

#: Programs that do the same whatever is in their folder; all others may read instructions there.
_PLAIN: Final = frozenset(
    [
        *("basename", "cat", "cmp", "comm", "cut", "date", "df", "diff", "dirname", "du", "echo"),
        *("expr", "false", "file", "free", "grep", "head", "hostname", "id", "journalctl", "ls"),
        *("md5sum", "nl", "od", "paste", "printf", "ps", "pwd", "readlink", "realpath", "seq"),
        *("sha1sum", "sha256sum", "sleep", "sort", "ss", "stat", "systemctl", "tac", "tail", "tr"),
        *("true", "tty", "uname", "uniq", "uptime", "wc", "whoami"),
    ]
)
#: Names by which ``git`` finds its settings; without ``.git`` those of a bare repository.
_GIT_NAMES: Final = frozenset(
    {".git", ".gitattributes", ".gitconfig", ".gitmodules", "config", "head", "objects", "refs"}
)


def find_instruction(shape: ParsedCommand | None, written: Sequence[str]) -> str | None:
    """
    Return how a command may do something else than it says, or ``None``.

    ``written`` are the files that were written without being seen; empty text for any.
    """
    for command in () if shape is None else shape.commands:
        program = command.words[0]
        if program in _PLAIN:
            continue
        for path in written:
            if program != "git" or _is_for_git(path):
                what = path or "something"
                return f"{program} follows files of its folder, and {what} was written unseen"
    return None


def _is_for_git(path: str) -> bool:
    # Some file systems know no upper case.
    return not path or not _GIT_NAMES.isdisjoint(part.lower() for part in PurePosixPath(path).parts)
