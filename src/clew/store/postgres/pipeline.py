"""Connection whose pipelines are sent as one message that ends with a Sync."""

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
    Pipeline that sends nothing until the block ends, then everything and a Sync.

    The driver's own pipeline sends each statement by itself, so a connection that is cut
    between two of them leaves a server that waits for the rest with all its locks. It also
    sends a Flush after the Sync whenever the result is not there yet: the server takes that
    for the start of something new, and no longer ends the transaction for being idle. In
    both cases the locks of a client that is paused or cut off were held until TCP gave up,
    or for ever.
    """

    def _communicate_gen(self) -> PQGen[None]:
        # Called for each statement, which waits for the others.
        yield from ()

    def _exit_gen(self) -> PQGen[None]:
        self._enqueue_sync()
        while self.command_queue:
            self.command_queue.popleft()()
        yield from send(self.pgconn)
        yield from self._fetch_gen(flush=False)


class PipelinedConnection(psycopg.Connection[tuple[Any, ...]]):
    """Driver's connection with our pipelines."""

    @contextmanager
    def pipeline(self) -> Generator[psycopg.Pipeline]:
        """
        Send what is executed in the block, and receive the results, at its end.

        Must not be nested. Raises at the end what the first failed statement raises.
        """
        pipeline = self._pipeline = _Pipeline(self)
        try:
            with pipeline:
                yield pipeline
        finally:
            self._pipeline = None
