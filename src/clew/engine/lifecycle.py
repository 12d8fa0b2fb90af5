"""What people do to a conversation: compact it, go back, branch, take it up again, close it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from clew.agent import messages as codec
from clew.core import scope as scopes
from clew.core import session as reasons
from clew.core.double_text import DoubleText
from clew.core.inbox import AcceptResult, InboxKind, NewInput
from clew.engine.checks import checked_title
from clew.engine.commands import COMPRESS, RESTORE, RETRY, REWIND, UNDO, retried
from clew.store.transactions import (
    branches,
    context,
    conversations,
    inbox,
    locks,
    resets,
    rewinds,
    sessions,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clew.agent.messages import ModelMessage
    from clew.core.context import CompactionPreview
    from clew.core.ids import ConversationId, OwnerId, SessionId, SessionIdFactory
    from clew.core.route import Route
    from clew.core.scope import Scope
    from clew.engine.compaction import Compacted
    from clew.engine.turns import Means
    from clew.store.contract import Tx


class Lifecycle:
    """
    The use cases of a conversation's sessions.

    What changes the conversation is filed in its line and carried out by the holder of its lease;
    ``Engine.follow_input`` tells when, and what came of it.
    """

    def __init__(
        self, means: Means, owner: OwnerId, kick: Callable[[ConversationId], None]
    ) -> None:
        self._means, self._store, self._ids = means, means.store, means.ids
        self._owner, self._kick = owner, kick

    async def compact(
        self,
        session: SessionId,
        messages: Sequence[ModelMessage] | None = None,
        *,
        focus: str | None = None,
        holder: str | None = None,
    ) -> Compacted:
        """
        Compact a conversation now, outside of its line; any of its session ids stands for it.

        Whoever hands in the ``messages`` that it holds of ``session`` gets them back, the same
        ones, unless the conversation was moved by this call; and nothing moves if somebody else
        has moved it since. Without them the head is compacted, whatever it is.

        :raises NotFound: if there is no such session
        """
        found = await self._store.read(sessions.get_session, session)
        done = await self._means.compactions.compact(
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

    async def compress(
        self, conversation: ConversationId, *, focus: str | None = None
    ) -> AcceptResult:
        """
        File a compaction that a person asks for; ``compacted`` reads what came of it.

        :raises Refused: while another compaction of the conversation is under way or filed
        """
        return await self._file(conversation, COMPRESS, focus=focus)

    async def preview(self, conversation: ConversationId) -> CompactionPreview:
        """
        What a compaction that a person asks for would do now; nothing changes.

        :raises NotFound: if there is no such conversation
        """
        return await self._means.compactions.preview(conversation)

    async def rewind(self, conversation: ConversationId, *, to: int) -> AcceptResult:
        """
        File that the context goes back to right after entry ``to``; the log keeps all.

        :raises UsageError: if there is no such entry
        """
        found = await self._store.read(conversations.get_conversation, conversation)
        rewinds.raise_if_unknown_entry(to, last_seq=found.last_seq)
        return await self._file(conversation, REWIND, to=to)

    async def undo(self, conversation: ConversationId, *, back: int = 1) -> AcceptResult:
        """File that the last ``back`` exchanges are taken out of the context."""
        return await self._file(conversation, UNDO, back=back)

    async def retry(
        self, conversation: ConversationId, *, route: Route | None = None
    ) -> tuple[AcceptResult, AcceptResult]:
        """
        File that the last exchange is undone and what the person said is handed in again.

        :return: the command, and the message that stands in the line once the command is done
        """
        key = None if route is None else route.key
        filed = await self._file(conversation, RETRY, route=key)
        return filed, replace(filed, inbox_id=retried(filed.inbox_id))

    async def restore(self, conversation: ConversationId) -> AcceptResult:
        """File that the compaction which opened the head is undone."""
        return await self._file(conversation, RESTORE)

    async def _file(
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
            _accept, item, conversation=conversation, session_ids=self._means.session_ids
        )
        self._kick(conversation)
        return accepted

    async def branch(
        self,
        source: ConversationId,
        *,
        at: int | None = None,
        title: str | None = None,
        route: Route | None = None,
        viewer: Scope = scopes.LOCAL,
    ) -> ConversationId:
        """
        Open a conversation that begins with the context of another, and move ``route`` there.

        :raises NotFound: if there is no such conversation in what ``viewer`` may see
        :raises UsageError: if it has no entry ``at``, or the title cannot be used
        """
        await self._store.read(conversations.get_visible_conversation, source, viewer=viewer)
        new = self._ids.new_conversation_id()
        await self._store.write(
            _branch,
            source,
            new=new,
            at=at,
            title=None if title is None else checked_title(title),
            route=route,
            session_ids=self._means.session_ids,
        )
        return new

    async def resume(
        self, route: Route, conversation: ConversationId, *, viewer: Scope = scopes.LOCAL
    ) -> None:
        """
        Have a route lead to a conversation; the one that it leaves stays as it is.

        :raises NotFound: if there is no such conversation in what ``viewer`` may see
        """
        await self._store.write(_resume, route, conversation, viewer)
        self._kick(conversation)

    async def close(
        self, conversation: ConversationId, *, reason: str = reasons.USER_EXIT
    ) -> AcceptResult:
        """File that the session ends; the next message reopens the conversation."""
        return await self._file(conversation, resets.END_COMMAND, reason=reason, next=None)


def _accept(
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


def _branch(
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


def _resume(t: Tx, route: Route, conversation: ConversationId, viewer: Scope) -> None:
    conversations.get_visible_conversation(t, conversation, viewer=viewer)
    conversations.switch_route(t, route.key, conversation)
    t.notify(conversation)
