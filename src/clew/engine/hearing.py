"""Hearing: what channels tell, taken in; nothing of it is lost or counted twice."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from clew.core.chat import MessageEdited, prefix_sender
from clew.core.double_text import DoubleText
from clew.core.inbox import AcceptResult, InboxKind, NewInput
from clew.core.text import sanitize_text
from clew.engine.checks import LONGEST_MESSAGE
from clew.store.transactions import files, hearing, inbox, moving
from clew.store.transactions.files import FetchedFile
from clew.store.transactions.hearing import ButtonResult, ChangeOutcome, ChannelActor

__all__ = ["ButtonResult", "ChangeOutcome", "ChannelActor", "FetchedFile", "Hearing"]

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clew.core.approval import NumberedApproval
    from clew.core.chat import ButtonPressed, IncomingFile, MessageDeleted, MessageReceived
    from clew.core.ids import ConversationId, InboxId, OwnerId
    from clew.core.inbox import InboxItem
    from clew.core.people import AccessDecision, ChannelAccount
    from clew.core.route import Route
    from clew.engine.turns import Means

#: A message waits at most so long for its files.
FILES = timedelta(seconds=60)


class Hearing:
    """Takes in what is heard on the channels of one process."""

    def __init__(
        self, means: Means, owner: OwnerId, kick: Callable[[ConversationId], None]
    ) -> None:
        self._means, self._store, self._ids = means, means.store, means.ids
        self._owner, self._kick = owner, kick

    async def message(
        self, heard: MessageReceived, *, who: ChannelActor, route: Route, double_text: DoubleText
    ) -> AcceptResult | AccessDecision:
        """
        Store what somebody says; else what becomes of them.

        With files it waits until ``arrived`` tells of them, but not long. A change of a message
        counts as that message said again.
        """
        original = _event(who.account, heard.original) if isinstance(heard, MessageEdited) else None
        item = self._item(
            heard,
            who,
            route,
            double_text=double_text,
            hold=FILES if heard.files else timedelta(),
        )
        accepted = await self._store.write(
            hearing.receive_message,
            item,
            who=who,
            route=route,
            new_conversation=self._ids.new_conversation_id(),
            session_ids=self._means.session_ids,
            reset=self._means.reset,
            replaces=original,
        )
        if isinstance(accepted, AcceptResult) and accepted.outcome is None:
            self._kick(accepted.conversation_id)
        return accepted

    def fetched(
        self, file: IncomingFile, content: bytes | None, *, missing: str | None
    ) -> FetchedFile:
        """What became of a file, to be told to ``arrived``."""
        return FetchedFile(
            id=self._ids.new_attachment_id(),
            name=sanitize_text(file.name),
            media_type=sanitize_text(file.media_type),
            content=content,
            missing=missing,
        )

    async def arrived(self, inbox_id: InboxId, fetched: Sequence[FetchedFile]) -> bool:
        """The files of a message are there; ``False`` if it has gone without them."""
        return await self._store.write(files.attach_files, inbox_id, fetched)

    async def held(self) -> Sequence[InboxItem]:
        """Messages that wait for their files, also those of a process that died."""
        return await self._store.read(inbox.list_held_items)

    async def begin_command(
        self, heard: MessageReceived, *, who: ChannelActor, route: Route
    ) -> AcceptResult | AccessDecision:
        """Store that a chat command is about to be carried out; else what becomes of its writer."""
        return await self._store.write(
            hearing.begin_command,
            self._item(heard, who, route, kind=InboxKind.COMMAND, double_text=DoubleText.QUEUE),
            who=who,
            route=route,
            owner=self._owner,
            new_conversation=self._ids.new_conversation_id(),
            session_ids=self._means.session_ids,
        )

    async def end_command(self, command: InboxId, reply: str) -> None:
        """Store what it came to, and have that delivered."""
        await self._store.write(hearing.end_command, command, reply)

    async def cut_off(self) -> Sequence[InboxItem]:
        """Chat commands that a process which died was carrying out."""
        return await self._store.read(hearing.list_interrupted_commands)

    async def change(
        self,
        event: MessageEdited | MessageDeleted,
        *,
        account: ChannelAccount,
        who: ChannelActor | None,
        route: Route,
    ) -> ChangeOutcome | AccessDecision:
        """
        A message that was heard has another text now, or is gone (then ``who`` may be unknown).
        """
        text = None
        told: dict[str, object] = {}
        if isinstance(event, MessageEdited):
            text = _read(event, route)
            told = {"said": _payload(event, account)}
        original = _event(account, event.original)
        item = NewInput(
            id=self._ids.new_inbox_id(),
            kind=InboxKind.COMMAND,
            text=hearing.DELETED_COMMAND if text is None else hearing.EDIT_COMMAND,
            double_text=DoubleText.QUEUE,
            event=_event(account, event.event),
            payload=json.dumps({"original": original, "route": route.key, "text": text, **told}),
        )
        done = await self._store.write(
            hearing.apply_message_change,
            item,
            original=original,
            who=who,
            route=route,
            text=text,
            session_ids=self._means.session_ids,
        )
        if done is hearing.ChangeOutcome.QUEUED:
            filed = await self._store.read(inbox.get_item, item.id)
            self._kick(filed.conversation_id)
        return done

    async def press(self, pressed: ButtonPressed, *, who: ChannelActor) -> ButtonResult:
        """Answer a question by its button."""
        done = await self._store.write(
            hearing.answer_button, pressed.data, who=who, route=pressed.route
        )
        if done.conversation is not None:
            self._kick(done.conversation)
        return done

    async def questions(
        self, conversation: ConversationId, *, who: ChannelActor, route: Route
    ) -> tuple[Sequence[NumberedApproval], int]:
        """The open questions that somebody can answer in a chat, and how many are not theirs."""
        return await self._store.read(
            hearing.list_answerable_questions, conversation, who=who, route=route
        )

    async def moved_chat(self, route: Route, chat: str) -> None:
        """As ``moved``, by the chat's new id alone."""
        await self.moved(route, replace(route, chat=chat, user=None, thread=None))

    async def moved(self, old: Route, new: Route) -> None:
        """A chat has another id."""
        await self._store.write(moving.migrate_chat, old, new)

    def _item(
        self,
        heard: MessageReceived,
        who: ChannelActor,
        route: Route,
        *,
        double_text: DoubleText,
        kind: InboxKind = InboxKind.MESSAGE,
        hold: timedelta = timedelta(),
    ) -> NewInput:
        own = sanitize_text(heard.text)[:LONGEST_MESSAGE]
        return NewInput(
            id=self._ids.new_inbox_id(),
            kind=kind,
            text=own if kind is InboxKind.COMMAND else _read(heard, route),
            double_text=double_text,
            event=_event(who.account, heard.event),
            payload=json.dumps(_payload(heard, who.account), ensure_ascii=False),
            hold=hold,
        )


def _read(heard: MessageReceived, route: Route) -> str:
    """What the agent reads of a message."""
    return prefix_sender(sanitize_text(heard.agent_text)[:LONGEST_MESSAGE], heard.sender, route)


def _event(account: ChannelAccount, event: str) -> tuple[str, str, str]:
    return account.channel, account.account, event


def _payload(heard: MessageReceived, account: ChannelAccount) -> dict[str, object]:
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
