"""Reloads: the context goes on in a new session, whose tools and instructions are made anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core import session as reasons
from clew.core.ids import new_session_id
from clew.core.inbox import RELOAD_COMMAND
from clew.core.session import Head
from clew.core.session_base import extend_base
from clew.store.transactions import inbox, leases
from clew.store.transactions.sessions import (
    find_session_by_operation,
    get_base,
    get_head,
    rotate_session,
)

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, InboxId, SessionIdFactory
    from clew.core.lease import Lease
    from clew.core.session import Session
    from clew.store.contract import Tx


def queue_reload(t: Tx, conversation: ConversationId, *, id: InboxId) -> int:
    """
    Have a conversation go on in a new session, once its turn has ended.

    :return: the tokens of its newest request, which a provider then reads without its cache; 0 if
        there was none
    :raises NotFound: if the conversation does not exist
    """
    inbox.accept_own_command(t, conversation, RELOAD_COMMAND, id=id, session_ids=new_session_id)
    newest = t.fetch_value(
        """
        SELECT input_tokens FROM usage WHERE conversation_id = $1 AND turn_id IS NOT NULL
        ORDER BY created_at DESC, id DESC LIMIT 1
        """,
        conversation,
    )
    return int(newest or 0)


def reload_context(
    t: Tx, lease: Lease, *, operation: str, session_ids: SessionIdFactory
) -> Session | None:
    """
    Go on with the same context in a new session; ``None`` if there is nothing to make anew.

    Repeating it with the same ``operation`` returns the same session.

    :raises LeaseLost: if the lease is not held any more
    """
    if (done := find_session_by_operation(t, operation)) is not None:
        return done
    last_seq = leases.verify_lease_for_write(t, lease)
    head = get_head(t, lease.conversation_id)
    if not head.is_open or head.instructions is None:
        # Both are made with its next request anyway.
        return None
    return rotate_session(
        t,
        lease,
        operation=operation,
        expected=Head(session=head.id, last_seq=last_seq),
        base=extend_base(get_base(t, head.id), opened_seq=head.opened_seq, last_seq=last_seq),
        reason=reasons.RELOAD,
        session_ids=session_ids,
    )
