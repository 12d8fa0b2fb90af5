"""The pattern that is offered for a command: as wide as is harmless."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from clew.core.command_shape import ANY

if TYPE_CHECKING:
    from clew.core.command_shape import SimpleCommand

#: Programs whose second word says what they do.
_WITH_SUBCOMMANDS: Final = frozenset(
    (
        "apt", "apt-cache", "brew", "cargo", "docker", "gh", "git", "go", "helm", "journalctl",
        "kubectl", "npm", "pip", "pip3", "pnpm", "podman", "poetry", "systemctl", "terraform", "uv",
        "yarn",
    )
)  # fmt: skip
#: Subcommands that run what their arguments say.
_RUNNERS: Final = frozenset(
    (
        "bisect", "dlx", "exec", "filter-branch", "generate", "run", "rebase", "tool", "x",
    )
)  # fmt: skip
#: Programs that only read, whatever their arguments are.
_READERS: Final = frozenset(
    (
        "basename", "cat", "cmp", "cut", "date", "df", "diff", "dirname", "du", "echo", "file",
        "grep", "head", "hostname", "id", "jq", "ls", "md5sum", "nl", "pwd", "readlink", "realpath",
        "sha256sum", "stat", "tail", "tr", "uname", "uniq", "wc", "which", "whoami",
    )
)  # fmt: skip
_SUBCOMMAND: Final = re.compile(r"[a-z][a-z0-9-]*")
#: Longer commands are not offered word by word.
_MAX_EXACT_LENGTH: Final = 200


def suggest_pattern(command: SimpleCommand) -> str | None:
    """Return the pattern to offer for a command; ``None`` if there is none."""
    program, *arguments = command.words
    if program in _READERS:
        return f"{program} {ANY}"
    if program in _WITH_SUBCOMMANDS and arguments and _is_plain_subcommand(arguments[0]):
        return f"{program} {arguments[0]} {ANY}"
    exact = shlex.join(command.words)
    if command.open_ended or ANY in exact or len(exact) > _MAX_EXACT_LENGTH:
        return None
    return exact


def _is_plain_subcommand(word: str) -> bool:
    return word not in _RUNNERS and _SUBCOMMAND.fullmatch(word) is not None
