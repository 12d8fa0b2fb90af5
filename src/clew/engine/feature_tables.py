"""Tables of features: the code of a feature is left alone in a store that does not have its."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from clew.store.feature_migrations import has_feature_tables

if TYPE_CHECKING:
    from clew.plugin.registry import Features
    from clew.store.contract import Store, Tx

log = structlog.get_logger(__name__)


class FeatureTables:
    """The features whose tables a store has; it says once which one is off for want of them."""

    def __init__(self, features: Features) -> None:
        #: Features that need tables which were not found yet.
        self._wanted = {schema.feature for schema in features.schemas}
        self._said: set[str] = set()

    def are_ready(self, t: Tx, feature: str) -> bool:
        """Return whether a feature has all tables that it needs: they may be made later."""
        if feature not in self._wanted:
            return True
        if has_feature_tables(t, feature):
            self._wanted.discard(feature)
            return True
        if feature not in self._said:
            self._said.add(feature)
            log.info("feature_without_tables", feature=feature)
        return False

    async def are_there(self, store: Store, feature: str) -> bool:
        """Return whether a feature has all tables that it needs; once it has, nothing is read."""
        return feature not in self._wanted or await store.read(self.are_ready, feature)
