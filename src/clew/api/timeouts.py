"""Timeouts of the API, in seconds."""

from __future__ import annotations

from clew.record import Record


class ApiTimeouts(Record):
    """Timeouts that are not settings."""

    #: A stream waits this long for text: a turn that fails before gets its own HTTP status.
    first_text: float = 10.0
    #: The interval of keep-alive comments in an idle stream.
    keep_alive: float = 15.0
    #: For the head of a request to arrive, from its first byte or from connecting.
    head: float = 10.0
    #: For its body to arrive.
    body: float = 60.0
    #: For turns to end once the server is stopping.
    shutdown_grace: float = 3.0


DEFAULT_TIMEOUTS = ApiTimeouts()
