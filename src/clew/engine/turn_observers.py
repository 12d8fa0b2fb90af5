"""Turn observers: code of features in the transactions of turns, each in a savepoint."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import structlog

from clew.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from clew.core.ids import ConversationId
    from clew.core.turn import Turn
    from clew.plugin.declarations import TurnWatch
    from clew.store.contract import Tx
    from clew.store.transactions.turns import TurnObserver

log = structlog.get_logger(__name__)


class TurnObservers:
    """The code of all features that takes part in the commits of turns."""

    def __init__(self, watches: Iterable[TurnWatch] = ()) -> None:
        watches = tuple(watches)
        self.on_step = _join([(one.name, one.on_step) for one in watches])
        self.on_end = _join([(one.name, one.on_end) for one in watches])
        self._on_stop = [(one.name, one.on_stop) for one in watches if one.on_stop is not None]

    def stop_work(self, t: Tx, conversation: ConversationId) -> bool:
        """Stop what features run for a conversation; return whether there was anything."""
        stopped = [_run(t, name, stop, conversation) for name, stop in self._on_stop]
        return any(stopped)


def _join(named: list[tuple[str, TurnObserver | None]]) -> TurnObserver | None:
    """Return one observer for all; ``None`` for none, which costs a turn nothing."""
    observers = [(name, one) for name, one in named if one is not None]
    if not observers:
        return None

    def observe(t: Tx, turn: Turn) -> None:
        for name, one in observers:
            _run(t, name, one, turn)

    return observe


def _run(t: Tx, name: str, function: Callable[..., object], *args: object) -> bool:
    try:
        return bool(t.run_nested(partial(_call, function, args)))
    except StoreUnavailable:
        # The connection is lost, not the feature: the whole transaction runs again.
        raise
    except Exception:  # the code of a feature may raise anything
        log.exception("turn_watch_failed", watch=name)
        return False


def _call(function: Callable[..., object], args: tuple[object, ...], t: Tx) -> object:
    return function(t, *args)
