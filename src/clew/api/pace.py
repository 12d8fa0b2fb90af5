"""The pace of the API: how long things may take, in seconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """Times that are no setting of the person who runs it."""

    #: A stream's status waits so long for the first words: a turn that fails before has its own.
    first_words: float = 10.0
    #: A stream in which nothing happens shows so often that it is still there.
    silence: float = 15.0
    #: The head of a request must have arrived, from its first byte or from connecting.
    head: float = 10.0
    #: Its body must have arrived.
    body: float = 60.0
    #: Turns may still end after the server was told to stop.
    grace: float = 3.0


PACE = Pace()
