"""Installation of a shell's completion: where its script goes, for this person alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from click.shell_completion import get_completion_class

from clew.cli.commands import root
from clew.errors import UsageError
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

SHELLS: Final = ("bash", "zsh", "fish")
_MARK: Final = "# Completion of clew."
_ZSH_LINES: Final = """
{mark}
(( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit; }}
source {file}
"""


class CompletionPlan(Record):
    """The files that complete clew's commands in a shell."""

    shell: str
    #: The script.
    file: Path
    script: str
    #: The file that has to load it; ``None`` where the shell finds the script by itself.
    startup: Path | None

    @property
    def is_installed(self) -> bool:
        return _read(self.file) == self.script and (
            self.startup is None or _MARK in _read(self.startup)
        )

    def install(self) -> None:
        """
        Write the files; what is there already stays.

        :raises UsageError: if they cannot be written
        """
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(self.script, encoding="utf-8")
            if self.startup is not None and _MARK not in _read(self.startup):
                with self.startup.open("a", encoding="utf-8") as stream:
                    stream.write(_ZSH_LINES.format(mark=_MARK, file=self.file))
        except OSError as error:
            raise UsageError(
                f"{error.filename or self.file} cannot be written ({error.strerror}): change its "
                f"rights, or load the completion yourself, from `clew completion {self.shell}`"
            ) from error


def render_script(shell: str) -> str:
    """
    Return the completion script of a shell.

    :raises UsageError: if there is none
    """
    complete = get_completion_class(shell)
    if complete is None:
        raise UsageError(f"there is no completion for {shell}: use {', '.join(SHELLS)}")
    return complete(root, {}, "clew", "_CLEW_COMPLETE").source() + "\n"


def detect_shell(environ: Mapping[str, str]) -> str | None:
    """Return the shell of this person, if it can complete commands."""
    name = Path(environ.get("SHELL", "")).name
    return name if name in SHELLS else None


def plan_completion(shell: str, environ: Mapping[str, str]) -> CompletionPlan:
    """Return where the completion of a shell belongs."""
    home = Path(environ.get("HOME") or Path.home())
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    places = {
        "bash": data / "bash-completion" / "completions" / "clew",
        "zsh": data / "zsh" / "site-functions" / "_clew",
        "fish": config / "fish" / "completions" / "clew.fish",
    }
    startup = Path(environ.get("ZDOTDIR") or home) / ".zshrc" if shell == "zsh" else None
    return CompletionPlan(
        shell=shell, file=places[shell], script=render_script(shell), startup=startup
    )


def find_missing_completion(environ: Mapping[str, str]) -> CompletionPlan | None:
    """Return what is missing in the shell of this person; ``None`` if clew is not on the path."""
    shell = detect_shell(environ)
    if shell is None or shutil.which("clew", path=environ.get("PATH")) is None:
        return None
    plan = plan_completion(shell, environ)
    return None if plan.is_installed else plan


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
