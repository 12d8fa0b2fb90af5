"""Arguments and standard replies of chat commands."""

from __future__ import annotations

from clew.errors import UsageError

WAITING_FOR_TURN = "This runs when the running turn has ended; /stop ends the turn now."


def parse_number(argument: str, *, default: int | None = None) -> int:
    """
    Return the number of an argument.

    :raises UsageError: if it is no number from 1
    """
    if not argument and default is not None:
        return default
    if not (argument.isascii() and argument.isdigit() and int(argument) >= 1):
        raise UsageError(f"{argument!r} is not a number: use 1 or more")
    return int(argument)
