"""The inbox of the channels: nothing received is lost or counted twice."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from clew.config.workspaces import find_workspace, move_workspace
from clew.core.access import ButtonOutcome, ChannelActor
from clew.core.attachments import FetchedFile
from clew.core.channel_events import MessageEdited, prefix_sender
from clew.core.double_text import DoubleText
from clew.core.inbox import InboxKind, NewInput
from clew.core.scope import scope_of
from clew.core.text import sanitize_text
from clew.engine.validation import MAX_MESSAGE_LENGTH
from clew.record import replace
from clew.store.transactions import (
    attachments,
    channel_inbox,
    chat_migration,
    inbox,
    workspace_writes,
)
from clew.store.transactions.channel_inbox import ButtonResult, ChangeOutcome

__all__ = ["ButtonResult", "ChangeOutcome", "ChannelActor", "ChannelInbox", "FetchedFile"]

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clew.core.access import AccessDecision, ChannelAccount
    from clew.core.approval import NumberedApproval
    from clew.core.channel_events import (
        ButtonPressed,
        IncomingFile,
        MessageDeleted,
        MessageReceived,
    )
    from clew.core.ids import ConversationId, InboxId, OwnerId
    from clew.core.inbox import AcceptResult, InboxItem
    from clew.core.message_order import WrittenMessage
    from clew.core.route import Route
    from clew.engine.services import EngineServices

log = structlog.get_logger(__name__)

#: Maximum time that a message waits for its files.
FILE_TIMEOUT = timedelta(seconds=60)


class ChannelInbox:
    """The intake for events from the channels of one process."""

    def __init__(
        self, means: EngineServices, owner: OwnerId, kick: Callable[[ConversationId], None]
    ) -> None:
        self._services, self._store, self._ids = means, means.store, means.ids
        self._owner, self._wake = owner, kick

    def build_message(
        self, heard: MessageReceived, *, who: ChannelActor, route: Route, double_text: DoubleText
    ) -> NewInput:
        """
        Return a message for ``Engine.submit``.

        One with files waits for ``attach_files``, up to a limit. An edited message counts
        as sent again.
        """
        item = self._build_input(
            heard,
            who,
            route,
            double_text=double_text,
            hold=FILE_TIMEOUT if heard.files else timedelta(),
        )
        edited = isinstance(heard, MessageEdited)
        original = _make_event_key(who.account, heard.original) if edited else None
        return replace(item, sender=who, replaces=original)

    async def filter_message(self, heard: MessageReceived) -> MessageReceived | None:
        """Return a message as plugins leave it; ``None`` if one drops it."""
        plugins = self._services.hooks.plugins
        if not plugins.implements_hook("pre_gateway_dispatch"):
            return heard
        verdict = await plugins.run_pre_gateway_dispatch(
            text=heard.text,
            platform=heard.route.platform,
            chat_id=heard.route.chat,
            chat_type=heard.route.kind,
            thread_id=heard.route.thread,
            user_id=heard.sender.id,
            user_name=heard.sender.name,
            message_id=heard.message,
        )
        if verdict.skip is not None:
            log.info("message_skipped", route=heard.route.key, reason=verdict.skip)
            return None
        return heard if verdict.text is None else replace(heard, text=verdict.text)

    def make_fetched_file(
        self, file: IncomingFile, content: bytes | None, *, missing: str | None
    ) -> FetchedFile:
        """Return the result of fetching a file, for ``attach_files``."""
        return FetchedFile(
            id=self._ids.new_attachment_id(),
            name=sanitize_text(file.name),
            media_type=sanitize_text(file.media_type),
            content=content,
            missing=missing,
        )

    async def attach_files(self, inbox_id: InboxId, fetched: Sequence[FetchedFile]) -> bool:
        """Attach a message's files; return ``False`` if it went on without them."""
        readers = self._services.file_readers
        texts = readers.find_texts(fetched)
        done = await self._store.write(attachments.attach_files, inbox_id, fetched, texts)
        if texts:
            readers.wake()
        return done

    async def list_awaiting_files(self) -> Sequence[InboxItem]:
        """Return the messages that wait for files, including those of dead processes."""
        return await self._store.read(inbox.list_held_items)

    async def begin_command(
        self, heard: MessageReceived, *, who: ChannelActor, route: Route
    ) -> AcceptResult | AccessDecision:
        """Store that a chat command is about to run; return the access decision if it may not."""
        return await self._store.write(
            channel_inbox.begin_command,
            self._build_input(
                heard, who, route, kind=InboxKind.COMMAND, double_text=DoubleText.QUEUE
            ),
            who=who,
            route=route,
            owner=self._owner,
            new_conversation=self._ids.new_conversation_id(),
            session_ids=self._services.session_ids,
        )

    async def end_command(self, command: InboxId, reply: str) -> None:
        """Store the reply of a command and have it delivered."""
        await self._store.write(channel_inbox.end_command, command, reply)

    async def list_interrupted_commands(self) -> Sequence[InboxItem]:
        """Return the chat commands that a dead process was running."""
        return await self._store.read(channel_inbox.list_interrupted_commands)

    async def receive_change(
        self,
        event: MessageEdited | MessageDeleted,
        *,
        account: ChannelAccount,
        who: ChannelActor | None,
        route: Route,
    ) -> ChangeOutcome | AccessDecision:
        """Store that a message was edited or deleted; ``who`` may be unknown for a deletion."""
        text = None
        told: dict[str, object] = {}
        if isinstance(event, MessageEdited):
            text = _render_text(event, route)
            told = {"said": _build_payload(event, account)}
        original = _make_event_key(account, event.original)
        item = NewInput(
            id=self._ids.new_inbox_id(),
            kind=InboxKind.COMMAND,
            text=channel_inbox.DELETED_COMMAND if text is None else channel_inbox.EDIT_COMMAND,
            double_text=DoubleText.QUEUE,
            event=_make_event_key(account, event.event),
            payload=json.dumps({"original": original, "route": route.key, "text": text, **told}),
            untrusted=isinstance(event, MessageEdited) and event.has_foreign_text,
        )
        done = await self._store.write(
            channel_inbox.apply_message_change,
            item,
            original=original,
            who=who,
            route=route,
            text=text,
            session_ids=self._services.session_ids,
        )
        if done is channel_inbox.ChangeOutcome.QUEUED:
            filed = await self._store.read(inbox.get_item, item.id)
            self._wake(filed.conversation_id)
        return done

    async def answer_button(self, pressed: ButtonPressed, *, who: ChannelActor) -> ButtonResult:
        """Answer an approval question by its button."""
        done = await self._store.write(
            channel_inbox.answer_button, pressed.data, who=who, route=pressed.route
        )
        if done.outcome is ButtonOutcome.RECORDED and done.approval is not None:
            self._wake(done.approval.conversation_id)
        return done

    async def list_questions(
        self,
        conversation: ConversationId,
        *,
        who: ChannelActor,
        route: Route,
        written: WrittenMessage | None = None,
    ) -> tuple[Sequence[NumberedApproval], int]:
        """
        Return the open questions that a person can answer in a chat, and a count of others.

        ``written`` is their message, which answers only what was shown before it.
        """
        return await self._store.read(
            channel_inbox.list_answerable_questions,
            conversation,
            who=who,
            route=route,
            written=written,
        )

    async def migrate_chat(self, route: Route, chat: str) -> None:
        """Move a chat as ``migrate_route``, by the chat's new id alone."""
        await self.migrate_route(route, replace(route, chat=chat, user=None, thread=None))

    async def migrate_route(self, old: Route, new: Route) -> None:
        """Move the conversations of a chat that has another id, and its workspace."""
        await self._store.write(chat_migration.migrate_chat, old, new)
        settings = self._services.feature_context.settings
        before, after = (find_workspace(settings, scope_of(one)).root for one in (old, new))
        if await asyncio.to_thread(move_workspace, settings, scope_of(old), scope_of(new)):
            await self._store.write(workspace_writes.move_writes, str(before), str(after))

    def _build_input(
        self,
        heard: MessageReceived,
        who: ChannelActor,
        route: Route,
        *,
        double_text: DoubleText,
        kind: InboxKind = InboxKind.MESSAGE,
        hold: timedelta = timedelta(),
    ) -> NewInput:
        own = sanitize_text(heard.text)[:MAX_MESSAGE_LENGTH]
        return NewInput(
            id=self._ids.new_inbox_id(),
            kind=kind,
            text=own if kind is InboxKind.COMMAND else _render_text(heard, route),
            double_text=double_text,
            event=_make_event_key(who.account, heard.event),
            payload=json.dumps(_build_payload(heard, who.account), ensure_ascii=False),
            hold=hold,
            untrusted=heard.has_foreign_text,
        )


def _render_text(heard: MessageReceived, route: Route) -> str:
    """Return the text of a message as the agent reads it."""
    return prefix_sender(sanitize_text(heard.agent_text)[:MAX_MESSAGE_LENGTH], heard.sender, route)


def _make_event_key(account: ChannelAccount, event: str) -> tuple[str, str, str]:
    return account.channel, account.account, event


def _build_payload(heard: MessageReceived, account: ChannelAccount) -> dict[str, object]:
    told: dict[str, object] = {
        "account": [account.channel, account.account],
        "sender": {"id": heard.sender.id, "name": sanitize_text(heard.sender.name)},
        "message": heard.message,
    }
    if heard.files:
        told["files"] = [
            {
                "file": file.id,
                "name": sanitize_text(file.name),
                "media_type": sanitize_text(file.media_type),
                "size": file.size,
            }
            for file in heard.files
        ]
    return told
