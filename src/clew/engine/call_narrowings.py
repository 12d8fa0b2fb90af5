"""Narrowings: what features let run without asking at most, whatever rules and grants say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from clew.core.policy_rule import CallNarrowing
from clew.engine.feature_tables import FeatureTables
from clew.errors import StoreError
from clew.plugin.declarations import NarrowingSource
from clew.plugin.registry import Features

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.engine.store_retry import RetryingStore
    from clew.plugin.registry import Declared
    from clew.plugin.turn_context import TurnContext
    from clew.store.contract import Tx

log = structlog.get_logger(__name__)

#: Nobody knows what it would list: every call asks.
_FAILED: Final = CallNarrowing(says="a feature that cannot say what may run", calls=())


class CallNarrowings:
    """The narrowings of all features."""

    def __init__(
        self, features: Features | None = None, tables: FeatureTables | None = None
    ) -> None:
        features = features or Features()
        self._tables = tables or FeatureTables(features)
        self._sources = features.get(NarrowingSource)

    async def read(self, store: RetryingStore, context: TurnContext) -> Sequence[CallNarrowing]:
        """Return those of a turn, as they are now."""
        return [found for one in self._sources for found in await self._read(one, store, context)]

    async def _read(
        self, source: Declared[NarrowingSource], store: RetryingStore, context: TurnContext
    ) -> Sequence[CallNarrowing]:
        try:
            return await store.read(self._find, source, context)
        except StoreError:
            raise
        except Exception:  # the code of a feature may raise anything
            log.exception("narrowing_failed", name=source.value.name)
            return [_FAILED]

    def _find(
        self, t: Tx, source: Declared[NarrowingSource], context: TurnContext
    ) -> Sequence[CallNarrowing]:
        if not self._tables.are_ready(t, source.owner):
            return ()
        return [*source.value.find(t, context)]
