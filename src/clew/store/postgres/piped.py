"""A connection whose pipelines travel as one, and end with what makes the server watch us."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.generators import send

if TYPE_CHECKING:
    from collections.abc import Generator

    from psycopg.abc import PQGen


class _Pipeline(psycopg.Pipeline):
    """
    Sends nothing until the block is over, then all of it and a Sync.

    The driver's own sends each statement by itself, so a link that is cut between two of them
    leaves a server that waits for the rest with all its locks. And it sends a Flush after the
    Sync, whenever the answer is not there yet: the server takes that for the begin of something
    new, and no longer ends the transaction for being idle. In both cases the locks of a client
    that is paused or cut off were held until TCP gave up, or for ever.
    """

    def _communicate_gen(self) -> PQGen[None]:
        # Called for each statement: it waits for the others.
        yield from ()

    def _exit_gen(self) -> PQGen[None]:
        self._enqueue_sync()
        while self.command_queue:
            self.command_queue.popleft()()
        yield from send(self.pgconn)
        yield from self._fetch_gen(flush=False)


class Piped(psycopg.Connection[tuple[Any, ...]]):
    """As the driver's, with pipelines of ours."""

    @contextmanager
    def pipeline(self) -> Generator[psycopg.Pipeline]:
        """
        What is executed in the block is sent, and answered, at its end; not to be nested.

        Raises there what the first statement that failed raises.
        """
        pipeline = self._pipeline = _Pipeline(self)
        try:
            with pipeline:
                yield pipeline
        finally:
            self._pipeline = None
