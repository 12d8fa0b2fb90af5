"""Arguments and standard replies of chat commands."""

from __future__ import annotations

from clew.errors import UsageError

WAITING_FOR_TURN = "That will be done when the running turn has ended; /stop ends it now."


def parse_number(argument: str, *, default: int | None = None) -> int:
    """
    Return the number of an argument.

    :raises UsageError: if it is no number from 1
    """
    if not argument and default is not None:
        return default
    if not (argument.isascii() and argument.isdigit() and int(argument) >= 1):
        raise UsageError(f"{argument!r} is no number: write one from 1")
    return int(argument)
