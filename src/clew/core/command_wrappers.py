"""Programs that run another command, which is the one to judge."""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, Final

from clew.core.command_shape import SimpleCommand
from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Mapping

_DURATION: Final = re.compile(r"[0-9.]+[smhd]?")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_WORD: Final = re.compile(r"[A-Za-z0-9_+:-]+")


class UnknownOption(ValueError):
    """Option of a wrapper that is not known: nobody can tell where its command begins."""

    def __init__(self, program: str, option: str) -> None:
        super().__init__(f"{program} has the option {option}, which is not known")


class _Wrapper(Record):
    flags: frozenset[str] = frozenset()
    #: Options with a value, in the next word or (if short) in the same; with the form of it.
    valued: Mapping[str, re.Pattern[str]] = field(default_factory=dict[str, "re.Pattern[str]"])
    #: Form of the arguments before the command.
    operands: tuple[re.Pattern[str], ...] = ()
    open_ended: bool = False


_WRAPPERS: Final = {
    "command": _Wrapper(),
    "env": _Wrapper(flags=frozenset({"-i", "--ignore-environment"}), valued={"-u": _WORD}),
    "ionice": _Wrapper(valued={"-c": _WORD, "-n": _NUMBER}),
    "nice": _Wrapper(valued={"-n": _NUMBER}),
    "nohup": _Wrapper(),
    "setsid": _Wrapper(flags=frozenset({"-w", "--wait"})),
    "stdbuf": _Wrapper(valued={"-i": _WORD, "-o": _WORD, "-e": _WORD}),
    "time": _Wrapper(flags=frozenset({"-p"})),
    "timeout": _Wrapper(
        flags=frozenset({"--foreground", "--preserve-status", "-v", "--verbose"}),
        valued={"-k": _DURATION, "-s": _WORD},
        operands=(_DURATION,),
    ),
    "xargs": _Wrapper(
        flags=frozenset({"-0", "--null", "-r", "--no-run-if-empty", "-t", "-x"}),
        valued={"-n": _NUMBER, "-P": _NUMBER, "-L": _NUMBER, "-s": _NUMBER},
        open_ended=True,
    ),
}


def unwrap(command: SimpleCommand) -> SimpleCommand:
    """
    Return the command that the known wrappers around it run.

    :raises UnknownOption: if a wrapper has an option that is not known
    """
    while (wrapper := _WRAPPERS.get(command.words[0])) is not None:
        rest = _skip_arguments(command.words[0], wrapper, list(command.words[1:]))
        if not rest:
            # Alone it runs nothing, except for xargs, which then runs echo.
            return replace(command, open_ended=command.open_ended or wrapper.open_ended)
        command = SimpleCommand(
            words=tuple(rest), open_ended=command.open_ended or wrapper.open_ended
        )
    return command


def _skip_arguments(program: str, wrapper: _Wrapper, words: list[str]) -> list[str]:
    """Return the words after the wrapper's own options and operands."""
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option == "--":
            break
        if option not in wrapper.flags and not _take_value(wrapper, option, words):
            raise UnknownOption(program, option)
    for form in wrapper.operands:
        if not words or not form.fullmatch(words[0]):
            raise UnknownOption(program, words[0] if words else "(none)")
        words.pop(0)
    if program == "env" and words and "=" in words[0]:
        # A variable can make any program run another.
        raise UnknownOption(program, words[0])
    return words


def _take_value(wrapper: _Wrapper, option: str, words: list[str]) -> bool:
    """Remove the value of an option from the words; return whether the option is known."""
    if (form := wrapper.valued.get(option)) is not None:
        return bool(words and form.fullmatch(words.pop(0)))
    form = wrapper.valued.get(option[:2])
    return form is not None and bool(form.fullmatch(option[2:]))
