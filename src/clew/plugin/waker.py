"""The way from features to the engine of their process."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.core.ids import ConversationId


class EngineWaker:
    """Has the engine work on conversations; without one, others find the work in the store."""

    def __init__(self) -> None:
        self._wake: Callable[[ConversationId], None] | None = None

    def connect(self, wake: Callable[[ConversationId], None]) -> None:
        """Set the engine of the process."""
        self._wake = wake

    def wake(self, conversation: ConversationId) -> None:
        """Work on a conversation here, also in a process that leaves others' work alone."""
        if self._wake is not None:
            self._wake(conversation)
