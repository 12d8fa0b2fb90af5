"""Shell commands as plain data, and the patterns that they are compared with."""

from __future__ import annotations

import re
import shlex
from typing import Final

from clew.record import Record

#: Ends a pattern to allow any further words; within a word, stands for any characters.
ANY: Final = "*"


class SimpleCommand(Record):
    """One program with its arguments, after expansion of quotes and known wrappers."""

    words: tuple[str, ...]
    #: It gets further words that the text does not show, as from ``xargs``.
    open_ended: bool = False


class ParsedCommand(Record):
    """
    A shell command as its parser reads it.

    It is *plain* if it is a list of commands of literal words. Everything else (a
    substitution, an expansion, an assignment, a wrapper with unknown options, a text that
    cannot be parsed) is a problem: nobody knows what it runs.
    """

    commands: tuple[SimpleCommand, ...] = ()
    #: Files that redirections name, without ``/dev/null``.
    redirects: tuple[str, ...] = ()
    #: The reason why it is not plain; ``None`` if it is.
    problem: str | None = None


class CommandPattern(Record):
    """Words of a command; in each, ``*`` stands for any characters."""

    text: str
    words: tuple[str, ...]
    #: True if further words may follow.
    any_rest: bool

    @classmethod
    def parse(cls, text: str) -> CommandPattern:
        """
        Parse a pattern such as ``git status *``.

        :raises ValueError: if it has no words, or a quotation without an end
        """
        words = shlex.split(text)
        if not words:
            raise ValueError("a pattern needs at least one word")
        any_rest = words[-1] == ANY
        return cls(text=text, words=tuple(words[:-1] if any_rest else words), any_rest=any_rest)

    def matches(self, command: SimpleCommand) -> bool:
        """Return whether the pattern covers the command, whatever its unseen words are."""
        count, given = len(self.words), len(command.words)
        if given < count or ((given > count or command.open_ended) and not self.any_rest):
            return False
        return all(map(matches_glob, self.words, command.words))


def matches_glob(pattern: str, text: str) -> bool:
    """Return whether a text fits a pattern in which only ``*`` is special."""
    if ANY not in pattern:
        return pattern == text
    return re.fullmatch(".*".join(map(re.escape, pattern.split(ANY))), text, re.DOTALL) is not None
