"""Care for children whose end no turn tells: deleted ones, and those of deleted parents."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from clew.features.delegation.children import ChildState, lock_child
from clew.features.delegation.ending import end_child, settle_child, stop_child
from clew.store.transactions.turn_queries import find_last_done_turn, find_unfinished_turn

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.plugin import FeatureContext
    from clew.store.contract import Tx

#: Seconds between two looks.
PERIOD: Final = 1.0
#: Children of one look.
_BATCH: Final = 50


async def watch_children(context: FeatureContext) -> None:
    """Settle what is left, for ever."""
    while True:
        await settle_left_children(context)
        await asyncio.sleep(PERIOD)


async def settle_left_children(context: FeatureContext) -> None:
    """End the children that nothing else will end."""
    for child in await context.store.read(list_left_children):
        await context.store.write(settle_left_child, child)


def list_left_children(t: Tx) -> list[ConversationId]:
    """Return children that run although nothing in them goes on, or nobody waits for them."""
    return t.fetch_column(
        """
        SELECT c.conversation_id FROM delegation_child c
        WHERE c.state = 'running' AND (
            NOT EXISTS (SELECT 1 FROM head h WHERE h.conversation_id = c.conversation_id)
            OR (c.reason IS NULL AND NOT EXISTS (
                SELECT 1 FROM head h WHERE h.conversation_id = c.parent_conversation
            ))
            OR (
                NOT EXISTS (
                    SELECT 1 FROM turn n
                    WHERE n.conversation_id = c.conversation_id AND n.state <> 'done'
                ) AND NOT EXISTS (
                    SELECT 1 FROM inbox i
                    WHERE i.conversation_id = c.conversation_id AND i.outcome IS NULL
                ) AND NOT EXISTS (
                    SELECT 1 FROM delegation_child d
                    WHERE d.parent_conversation = c.conversation_id AND d.state = 'running'
                )
            )
        )
        ORDER BY c.created_at, c.conversation_id LIMIT $1
        """,
        _BATCH,
    )


def settle_left_child(t: Tx, conversation: ConversationId) -> None:
    """End a child for which ``list_left_children`` has found a reason, if it still holds."""
    child = lock_child(t, conversation)
    if child is None or not child.is_running:
        return
    if not _is_there(t, conversation):
        end_child(t, child, ChildState.STOPPED, reason="deleted", turn=None)
    elif child.reason is None and not _is_there(t, child.parent_conversation):
        stop_child(t, child, reason="parent")
    elif find_unfinished_turn(t, conversation) is None:
        last = find_last_done_turn(t, conversation)
        if last is None:
            end_child(t, child, ChildState.STOPPED, reason=child.reason or "stopped", turn=None)
        else:
            settle_child(t, child, last)


def _is_there(t: Tx, conversation: ConversationId) -> bool:
    return t.exists("SELECT 1 FROM head WHERE conversation_id = $1", conversation)
