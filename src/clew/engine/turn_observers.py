"""Turn observers: code of features in the transactions of turns, each in a savepoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from clew.engine.feature_tables import FeatureTables
from clew.errors import StoreUnavailable
from clew.plugin.declarations import TurnWatch
from clew.plugin.registry import Features
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.core.ids import ConversationId
    from clew.core.turn import Turn
    from clew.store.contract import Tx
    from clew.store.transactions.turns import TurnObserver

log = structlog.get_logger(__name__)


class TurnObservers:
    """The code of all features that takes part in the commits of turns."""

    def __init__(
        self, features: Features | None = None, tables: FeatureTables | None = None
    ) -> None:
        features = features or Features()
        tables = tables or FeatureTables(features)
        watches = [
            (one.value, _Place(one.value.name, one.owner, tables))
            for one in features.get(TurnWatch)
        ]
        self.on_step = _join([(place, one.on_step) for one, place in watches])
        self.on_end = _join([(place, one.on_end) for one, place in watches])
        self._on_stop = [(place, one.on_stop) for one, place in watches if one.on_stop is not None]

    def stop_work(self, t: Tx, conversation: ConversationId) -> bool:
        """Stop what features run for a conversation; return whether there was anything."""
        # Not a generator: each of them is asked.
        stopped = [
            place.run(t, lambda t, stop=stop: stop(t, conversation))
            for place, stop in self._on_stop
        ]
        return any(stopped)


class _Place(Record, kw_only=False):
    """Place in which the code of a feature runs: stores that have its tables."""

    name: str
    feature: str
    tables: FeatureTables

    def run(self, t: Tx, job: Callable[[Tx], object]) -> bool:
        if not self.tables.are_ready(t, self.feature):
            return False
        try:
            return bool(t.run_nested(job))
        except StoreUnavailable:
            # The connection is lost, not the feature: the whole transaction runs again.
            raise
        except Exception:  # the code of a feature may raise anything
            log.exception("turn_watch_failed", watch=self.name)
            return False


def _join(places: list[tuple[_Place, TurnObserver | None]]) -> TurnObserver | None:
    """Return one observer for all; ``None`` for none, which costs a turn nothing."""
    observers = [(place, one) for place, one in places if one is not None]
    if not observers:
        return None

    def observe(t: Tx, turn: Turn) -> None:
        for place, one in observers:
            place.run(t, lambda t, one=one: one(t, turn))

    return observe
