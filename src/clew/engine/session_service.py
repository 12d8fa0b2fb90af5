"""Use cases of sessions: compact, rewind, branch, resume and close a conversation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clew.agent import messages as codec
from clew.core import scope as scopes
from clew.core import session as reasons
from clew.core.double_text import DoubleText
from clew.core.inbox import END_COMMAND, AcceptResult, InboxKind, NewInput
from clew.engine.queued_commands import COMPRESS, RESTORE, RETRY, REWIND, UNDO, make_retry_id
from clew.engine.validation import validate_title
from clew.record import replace
from clew.store.transactions import (
    branches,
    context,
    conversations,
    inbox,
    locks,
    rewinds,
    sessions,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clew.agent.messages import ModelMessage
    from clew.core.context_view import CompactionPreview
    from clew.core.ids import ConversationId, OwnerId, SessionId, SessionIdFactory
    from clew.core.route import Route
    from clew.core.scope import Scope
    from clew.engine.compaction import Compacted
    from clew.engine.services import EngineServices
    from clew.store.contract import Tx


class SessionService:
    """
    The use cases of a conversation's sessions.

    A change to the conversation is queued and executed by the holder of its lease;
    ``Engine.stream_input`` yields its result.
    """

    def __init__(
        self, means: EngineServices, owner: OwnerId, kick: Callable[[ConversationId], None]
    ) -> None:
        self._services, self._store, self._ids = means, means.store, means.ids
        self._owner, self._wake = owner, kick

    async def compact(
        self,
        session: SessionId,
        messages: Sequence[ModelMessage] | None = None,
        *,
        focus: str | None = None,
        holder: str | None = None,
    ) -> Compacted:
        """
        Compact a conversation now, outside its queue; any of its session ids identifies it.

        A caller that passes its ``messages`` of ``session`` gets the same ones back unless
        this call moved the conversation; and nothing moves if another caller has moved it
        since. Without them the head is compacted, whatever it is.

        :raises NotFound: if there is no such session
        """
        found = await self._store.read(sessions.get_session, session)
        done = await self._services.compaction.compact(
            found.conversation_id,
            owner=self._owner,
            session=None if messages is None else session,
            focus=focus,
            holder=holder,
            on_demand=True,
        )
        if messages is not None and not done.moved:
            return replace(done, messages=messages)
        head = await self._store.read(context.read_head_context, found.conversation_id)
        return replace(done, messages=[codec.load_message(each.message) for each in head.messages])

    async def queue_compaction(
        self, conversation: ConversationId, *, focus: str | None = None
    ) -> AcceptResult:
        """
        Queue a requested compaction; ``parse_compaction_note`` reads its result.

        :raises OperationRefused: while another compaction of the conversation is running or
            queued
        """
        return await self._queue_command(conversation, COMPRESS, focus=focus)

    async def preview_compaction(self, conversation: ConversationId) -> CompactionPreview:
        """
        Return what a compaction on request would do now; nothing changes.

        :raises NotFound: if there is no such conversation
        """
        return await self._services.compaction.preview(conversation)

    async def queue_rewind(self, conversation: ConversationId, *, to: int) -> AcceptResult:
        """
        Queue a rewind of the context to right after entry ``to``; the log keeps everything.

        :raises UsageError: if there is no such entry
        """
        found = await self._store.read(conversations.get_conversation, conversation)
        rewinds.raise_if_unknown_entry(to, last_seq=found.last_seq)
        return await self._queue_command(conversation, REWIND, to=to)

    async def queue_undo(self, conversation: ConversationId, *, back: int = 1) -> AcceptResult:
        """Queue the removal of the last ``back`` exchanges from the context."""
        return await self._queue_command(conversation, UNDO, back=back)

    async def queue_retry(
        self, conversation: ConversationId, *, route: Route | None = None
    ) -> tuple[AcceptResult, AcceptResult]:
        """
        Queue an undo of the last exchange and a new submission of its message.

        :return: the command, and the message that is queued once the command is executed
        """
        key = None if route is None else route.key
        filed = await self._queue_command(conversation, RETRY, route=key)
        return filed, replace(filed, inbox_id=make_retry_id(filed.inbox_id))

    async def queue_restore(self, conversation: ConversationId) -> AcceptResult:
        """Queue an undo of the compaction that opened the head."""
        return await self._queue_command(conversation, RESTORE)

    async def _queue_command(
        self, conversation: ConversationId, command: str, **arguments: object
    ) -> AcceptResult:
        item = NewInput(
            id=self._ids.new_inbox_id(),
            kind=InboxKind.COMMAND,
            text=command,
            payload=json.dumps(arguments),
            double_text=DoubleText.QUEUE,
        )
        accepted = await self._store.write(
            _accept_command, item, conversation=conversation, session_ids=self._services.session_ids
        )
        self._wake(conversation)
        return accepted

    async def branch_conversation(
        self,
        source: ConversationId,
        *,
        at: int | None = None,
        title: str | None = None,
        route: Route | None = None,
        viewer: Scope = scopes.LOCAL,
    ) -> ConversationId:
        """
        Open a conversation with the context of another, and move ``route`` there.

        :raises NotFound: if there is no such conversation that ``viewer`` may see
        :raises UsageError: if it has no entry ``at``, or the title cannot be used
        """
        await self._store.read(conversations.get_visible_conversation, source, viewer=viewer)
        new = self._ids.new_conversation_id()
        await self._store.write(
            _branch_conversation,
            source,
            new=new,
            at=at,
            title=None if title is None else validate_title(title),
            route=route,
            session_ids=self._services.session_ids,
        )
        return new

    async def resume_conversation(
        self, route: Route, conversation: ConversationId, *, viewer: Scope = scopes.LOCAL
    ) -> None:
        """
        Move a route to a conversation; the one that it leaves is unchanged.

        :raises NotFound: if there is no such conversation that ``viewer`` may see
        """
        await self._store.write(_move_route, route, conversation, viewer)
        self._wake(conversation)

    async def queue_close(
        self, conversation: ConversationId, *, reason: str = reasons.USER_EXIT
    ) -> AcceptResult:
        """Queue the end of the session; the next message reopens the conversation."""
        return await self._queue_command(conversation, END_COMMAND, reason=reason, next=None)


def _accept_command(
    t: Tx, item: NewInput, *, conversation: ConversationId, session_ids: SessionIdFactory
) -> AcceptResult:
    if item.text == COMPRESS:
        locks.raise_if_compacting(t, conversation, command=COMPRESS)
    return inbox.accept_input(
        t,
        item,
        target=conversation,
        new_conversation=conversation,
        session_ids=session_ids,
    )


def _branch_conversation(
    t: Tx,
    source: ConversationId,
    *,
    new: ConversationId,
    at: int | None,
    title: str | None,
    route: Route | None,
    session_ids: SessionIdFactory,
) -> None:
    branches.branch_conversation(t, source, new_conversation=new, session_ids=session_ids, at=at)
    if title is not None:
        conversations.rename_conversation(t, new, title)
    if route is not None:
        conversations.move_route(t, route.key, new)


def _move_route(t: Tx, route: Route, conversation: ConversationId, viewer: Scope) -> None:
    conversations.get_visible_conversation(t, conversation, viewer=viewer)
    conversations.switch_route(t, route.key, conversation)
    t.notify(conversation)
