"""
Context notes: what features tell the model beside a message, in the transaction that stores it.

A note is made by the code of a feature, on a thread of its own, within a time limit; its
statements run on the transaction's thread, in a savepoint. One that fails or hangs is left out.
"""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, TypeVar

import structlog

from clew.agent.messages import add_notes
from clew.engine.feature_tables import FeatureTables
from clew.errors import StoreUnavailable
from clew.plugin.declarations import ContextNote, Note
from clew.plugin.registry import Features
from clew.store.contract import Tx

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from clew.core.entry import NewEntry
    from clew.core.ids import SessionId
    from clew.core.inbox import InboxItem
    from clew.plugin.turn_context import TurnContext
    from clew.store.search_index import SearchIndex
    from clew.store.transactions.turns import DraftAnnotator

    MakeContext = Callable[[Tx, SessionId, Sequence[InboxItem]], TurnContext]

T = TypeVar("T")

log = structlog.get_logger(__name__)

#: Seconds for the code of one note; other writers wait meanwhile.
MAX_SECONDS: Final = 0.5
#: Characters of all notes of one feature beside a message.
MAX_CHARS: Final = 8_000
#: Seconds for which a note that took too long is not asked again.
PAUSE_AFTER_TIMEOUT: Final = 60.0


class ContextNotes:
    """The notes that features add to messages."""

    def __init__(
        self, features: Features | None = None, tables: FeatureTables | None = None
    ) -> None:
        features = features or Features()
        self._tables = tables or FeatureTables(features)
        self._declared = tuple(features.get(ContextNote))
        #: When a note that hung may be asked again, by the monotonic clock.
        self._paused_until: dict[str, float] = {}

    def bind(self, make_context: MakeContext) -> DraftAnnotator | None:
        """Return the function that adds the notes to the drafts of messages; ``None`` for none."""
        if not self._declared:
            return None

        def annotate(
            t: Tx, session: SessionId, items: Sequence[InboxItem], drafts: list[NewEntry]
        ) -> list[NewEntry]:
            notes = self._collect(t, make_context(t, session, items))
            return [*drafts[:-1], add_notes(drafts[-1], notes)] if notes else drafts

        return annotate

    def _collect(self, t: Tx, context: TurnContext) -> list[tuple[str, str]]:
        return [
            (one.value.name, note.text)
            for one in self._declared
            if self._tables.are_ready(t, one.owner)
            for note in self._make_safely(one.value, t, context)
        ]

    def _make_safely(self, one: ContextNote, t: Tx, context: TurnContext) -> list[Note]:
        if time.monotonic() < self._paused_until.get(one.name, 0):
            return []
        try:
            found = t.run_nested(lambda t: _run_bounded(t, lambda relay: one.make(relay, context)))
            return _limit_size(one.name, found)
        except TimeoutError:
            self._paused_until[one.name] = time.monotonic() + PAUSE_AFTER_TIMEOUT
            log.warning("note_late", note=one.name, seconds=MAX_SECONDS)
        except Exception as error:  # noqa: BLE001  (the code of a feature may raise anything)
            log.warning("note_failed", note=one.name, error=repr(error))
        return []


def _limit_size(name: str, notes: Sequence[Note]) -> list[Note]:
    left, kept = MAX_CHARS, list[Note]()
    for note in notes:
        if not isinstance(note, Note):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"a Note was expected, not {type(note).__name__}")
        if not note.text.strip():
            continue
        if len(note.text) > left:
            log.warning("note_cut", note=name, characters=len(note.text), kept=left)
        if left:
            kept.append(Note(text=note.text[:left]))
            left -= len(kept[-1].text)
    return kept


def _run_bounded(t: Tx, function: Callable[[Tx], Iterable[Note] | None]) -> list[Note]:
    """
    Run a function on a thread of its own, and its statements here.

    :raises TimeoutError: if it takes too long; its later statements fail
    """
    relay = _RelayTx(t)
    threading.Thread(target=relay.run, args=(function,), name="note", daemon=True).start()
    return relay.serve(time.monotonic() + MAX_SECONDS)


class _RelayTx(Tx):
    """The transaction as another thread sees it: its calls run on the transaction's thread."""

    def __init__(self, t: Tx) -> None:
        self._t, self.dialect, self._now = t, t.dialect, t.now
        self._calls: queue.SimpleQueue[tuple[Future[Any], str, tuple[Any, ...]]] = (
            queue.SimpleQueue()
        )
        self._result: Future[list[Note]] = Future()
        self._is_closed = False

    @property
    def now(self) -> int:
        return self._now

    @property
    def search_index(self) -> SearchIndex:
        raise StoreUnavailable("a note cannot search")

    def execute(self, sql: str, *args: Any) -> int:
        return self._call("execute", sql, *args)

    def fetch_one(self, sql: str, *args: Any) -> tuple[Any, ...] | None:
        return self._call("fetch_one", sql, *args)

    def fetch_all(self, sql: str, *args: Any) -> list[tuple[Any, ...]]:
        return self._call("fetch_all", sql, *args)

    def run_nested(self, job: Callable[[Tx], T]) -> T:
        # All of a note is undone, or nothing.
        raise StoreUnavailable("a note cannot undo a part of its work")

    def is_alive(self, owner: str) -> bool:
        return self._call("is_alive", owner)

    def notify(self, topic: str) -> None:
        self._call("notify", topic)

    def run(self, function: Callable[[Tx], Iterable[Note] | None]) -> None:
        """Run the function, on its own thread."""
        try:
            self._result.set_result(list(function(self) or ()))
        except BaseException as error:  # noqa: BLE001  (raised to the waiting caller)
            self._result.set_exception(
                error if isinstance(error, Exception) else RuntimeError(repr(error))
            )
        self._calls.put((self._result, "", ()))

    def serve(self, end: float) -> list[Note]:
        """
        Run the calls of the other thread until its function has ended.

        :raises TimeoutError: if that is not before ``end``
        """
        try:
            while True:
                answer, name, args = self._calls.get(timeout=max(0.0, end - time.monotonic()))
                if answer is self._result:
                    return self._result.result()
                self._answer_call(answer, name, args)
        except queue.Empty:
            raise TimeoutError(f"it took longer than {MAX_SECONDS:g} s") from None
        finally:
            self._is_closed = True

    def _answer_call(self, answer: Future[Any], name: str, args: tuple[Any, ...]) -> None:
        try:
            answer.set_result(getattr(self._t, name)(*args))
        except Exception as error:  # noqa: BLE001  (raised to the other thread)
            answer.set_exception(error)

    def _call(self, name: str, *args: Any) -> Any:
        if self._is_closed:
            raise StoreUnavailable("the message is stored already: this note is too late")
        answer: Future[Any] = Future()
        self._calls.put((answer, name, args))
        # One that comes just when the time is over is answered by nobody.
        return answer.result(timeout=2 * MAX_SECONDS)
