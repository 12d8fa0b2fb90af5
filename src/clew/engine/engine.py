"""
The engine: everything a front may ask for.

A front parses, calls one method here, and shows what comes back. The engine holds lifetimes and
owns no rule: rules are in ``clew.core``, what is stored is decided in ``clew.store.transactions``.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Self

from clew.agent.tool_names import list_tool_names
from clew.core import scope as scopes
from clew.core import session as reasons
from clew.core.approval import ApprovalState
from clew.core.context import ContextSize
from clew.core.double_text import DoubleText
from clew.core.events import InputCompleted
from clew.core.ids import ConversationId, looks_like_id
from clew.core.inbox import AcceptResult, NewInput
from clew.core.route import Route, local_route
from clew.core.turn import StopRequest
from clew.engine.checks import checked_text
from clew.engine.clients import Clients
from clew.engine.deliveries import Deliveries
from clew.engine.doors import Doors
from clew.engine.follow import follow
from clew.engine.follow_input import follow_input, input_end
from clew.engine.hearing import Hearing
from clew.engine.lifecycle import Lifecycle
from clew.engine.locks import Rights
from clew.engine.maintenance import Maintained, maintain, would_maintain
from clew.engine.marks import Marks
from clew.engine.measures import Measures
from clew.engine.orders import Orders
from clew.engine.owner import Owner
from clew.engine.people import People
from clew.engine.records import Records
from clew.engine.replays import Replays
from clew.engine.requests import request_of
from clew.engine.slash import answer
from clew.store.transactions import (
    approvals,
    expiry,
    inbox,
    resets,
    stops,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from datetime import datetime
    from types import TracebackType

    from clew.agent.messages import ModelMessage
    from clew.core.approval import Approval, NumberedApproval
    from clew.core.events import ConversationEvent
    from clew.core.health import ChannelHealth
    from clew.core.ids import ApprovalId, InboxId, OwnerId, SessionId, TurnId
    from clew.core.inbox import InboxItem
    from clew.core.scope import Scope
    from clew.core.turn import Turn
    from clew.engine.compaction import Compacted
    from clew.engine.hearing import ChannelActor
    from clew.engine.requests import Sent
    from clew.engine.slash import Reply
    from clew.engine.turns import Means


class Engine(Records):
    """
    One process's engine over a store.

    Inside ``async with`` it works on what is due, as an owner of its own; leaving it lets running
    turns go for the next owner. ``role`` names the front for people (serve, chat …). With
    ``own_only`` it works only on conversations that were given an input here, as a one-shot command
    should.
    """

    def __init__(
        self,
        means: Means,
        *,
        role: str,
        version: str,
        own_only: bool = False,
    ) -> None:
        super().__init__(means.store, undelete_for=means.undelete_for)
        self._means = means
        self._hub, self._ids = means.hub, means.ids
        self._owner = Owner(means, role=role, version=version, own_only=own_only)
        self.orders = Orders(means, self._owner.kick)
        self.clients = Clients(means, self._owner.id, self._owner.kick)
        self.lifecycle = Lifecycle(means, self._owner.id, self._owner.kick)
        self.replays = Replays(means)
        self.titles = means.titles
        self.models = means.choice
        self.hearing = Hearing(means, self._owner.id, self._owner.kick)
        self.deliveries = Deliveries(means.store, means.ids, self._owner.id)
        self.people = People(means.store, means.ids, means.session_ids)
        self.rights = Rights(means.store, self._owner.id)
        self.channels: dict[str, ChannelHealth] = {}
        self.doors = Doors()
        self.measures = Measures(means.store, means.hub, self._owner.id)

    def marks(self, channel: str) -> Marks:
        """What a channel keeps over restarts, by the name of its table."""
        return Marks(self._means.store, f"channel:{channel}")

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the agent's tools."""
        return list_tool_names(self._means.loop.agent)

    @property
    def owner(self) -> OwnerId:
        """This process, as leases name it."""
        return self._owner.id

    async def __aenter__(self) -> Self:
        await self._owner.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._owner.__aexit__(exc_type, exc, traceback)

    # What fronts ask for

    def target(self, name: str, *, agent: str = "main") -> Route | ConversationId:
        """
        Where an input for ``name`` goes: ids stay ids, a NAME is a local route, created on first
        use.

        :raises UsageError: if the name can be neither
        """
        if name.startswith("agent:"):
            return Route.parse(name)
        if looks_like_id(name):
            return ConversationId(name)
        return local_route(name, agent=agent)

    async def submit(
        self,
        text: str,
        *,
        target: Route | ConversationId,
        double_text: DoubleText = DoubleText.QUEUE,
        payload: str = "{}",
        event: tuple[str, str, str] | None = None,
        inbox_id: InboxId | None = None,
    ) -> AcceptResult:
        """
        Accept a message: when this returns it is stored and will have an outcome.

        Any session id of a conversation may stand for it. The same ``inbox_id`` or ``event`` is
        accepted once.

        :raises UsageError: if the text is empty or too long
        :raises NotFound: if the target is an id of nothing
        """
        item = NewInput(
            id=inbox_id or self._ids.new_inbox_id(),
            text=checked_text(text),
            double_text=double_text,
            payload=payload,
            event=event,
        )
        if isinstance(target, str):
            target = await self.resolve(target)
        return await self._accept(item, target)

    async def _accept(self, item: NewInput, target: Route | ConversationId) -> AcceptResult:
        accepted = await self._store.write(
            expiry.accept_or_reset,
            item,
            target=target,
            new_conversation=self._ids.new_conversation_id(),
            session_ids=self._means.session_ids,
            policy=self._means.reset,
        )
        if accepted.outcome is None:
            self._owner.kick(accepted.conversation_id)
        return accepted

    def attend(self, conversation: ConversationId) -> None:
        """Work on what this conversation has to do, as if an input had been given here."""
        self._owner.kick(conversation)

    async def idle(self) -> None:
        """Wait until nothing is being worked on here; what waits for others is not waited for."""
        await self._owner.idle()

    def follow(
        self,
        conversation: ConversationId,
        *,
        after: int,
        live: bool = True,
        with_standing: bool = False,
    ) -> AsyncGenerator[ConversationEvent]:
        """
        Every entry above ``after`` in order, without gap or repeat, and live events; endless.

        See ``clew.engine.follow.follow``.
        """
        return follow(
            self._store,
            self._hub,
            conversation,
            after=after,
            live=live,
            with_standing=with_standing,
        )

    def follow_input(
        self, accepted: AcceptResult, *, live: bool = True
    ) -> AsyncGenerator[ConversationEvent | InputCompleted]:
        """
        Live events of the turn that answers an input; the last one is its ``InputEnded``.

        Who needs no pieces of the answer (``live``) does not make the model stream.
        """
        return follow_input(
            self._store, self._hub, accepted.conversation_id, accepted.inbox_id, live=live
        )

    async def carried_out(self, filed: AcceptResult) -> InputCompleted:
        """Wait for what comes of an input, wherever it is worked on."""
        events = follow_input(
            self._store, self._hub, filed.conversation_id, filed.inbox_id, live=False
        )
        async with aclosing(events):
            async for event in events:
                if isinstance(event, InputCompleted):
                    return event
        raise AssertionError("an input has an end")

    async def input_end(self, inbox_id: InboxId) -> InputCompleted | None:
        """What became of an input; ``None`` while it is open."""
        return await self._store.read(input_end, inbox_id)

    async def stop(
        self, conversation: ConversationId, stop: StopRequest = StopRequest.STOP
    ) -> bool:
        """Ask the running turn to stop; ``False`` if none is running."""
        turn = await self._store.read(stops.find_unfinished_turn, conversation)
        if turn is None:
            return False
        return await self._store.write(stops.request_stop, turn.id, stop)

    async def unfinished_turn(self, conversation: ConversationId) -> Turn | None:
        return await self._store.read(stops.find_unfinished_turn, conversation)

    async def start_afresh(self, route: Route, *, reason: str = reasons.RESET) -> ConversationId:
        """
        Move a route to a new conversation; the one that it leaves is ended in its own line.

        Its running turn is asked to stop, and what waited there for this route is cancelled.
        """
        new = self._ids.new_conversation_id()
        old = await self._store.write(
            resets.start_new_conversation,
            route,
            item=self._ids.new_inbox_id(),
            new_conversation=new,
            session_ids=self._means.session_ids,
            reason=reason,
        )
        if old is not None:
            self._owner.kick(old)
        return new

    async def delete(
        self, conversation: ConversationId, *, viewer: Scope = scopes.LOCAL, at_once: bool = False
    ) -> datetime | None:
        """As ``Records.delete``; what this process had in memory of it goes too."""
        until = await super().delete(conversation, viewer=viewer, at_once=at_once)
        self._means.warm.drop(conversation)
        return until

    async def rewind(self, conversation: ConversationId, *, to: int) -> AcceptResult:
        """As ``lifecycle.rewind``."""
        return await self.lifecycle.rewind(conversation, to=to)

    async def close(self, conversation: ConversationId, *, reason: str) -> AcceptResult:
        """As ``lifecycle.close``."""
        return await self.lifecycle.close(conversation, reason=reason)

    async def compact(
        self,
        session_id: SessionId,
        messages: Sequence[ModelMessage] | None = None,
        *,
        focus: str | None = None,
        holder: str | None = None,
    ) -> Compacted:
        """As ``lifecycle.compact``: the one way for every caller outside of a turn."""
        return await self.lifecycle.compact(session_id, messages, focus=focus, holder=holder)

    async def command(
        self,
        text: str,
        *,
        target: Route | ConversationId,
        viewer: Scope,
        operator: bool | None = None,
        who: ChannelActor | None = None,
        on_filed: Callable[[], None] = lambda: None,
    ) -> Reply:
        """
        Carry out a chat command, a text that begins with ``/``, and say what came of it.

        What cannot be done is said, too. ``viewer`` is whoever wrote it: nothing outside of that
        scope can be seen or changed. An ``operator`` (by default whoever sees everything) may also
        manage people. ``who`` wrote it on a chat platform: only what was shown them there can be
        approved. ``on_filed`` is told when what is said next would come after the command.

        :raises StoreError: if the store cannot be used
        """
        return await answer(
            self,
            text,
            target=target,
            viewer=viewer,
            operator=viewer == scopes.LOCAL if operator is None else operator,
            who=who,
            on_filed=on_filed,
        )

    async def context_size(self, conversation: ConversationId) -> ContextSize:
        """
        How large the next request's context is, and how large it may be.

        :raises NotFound: if there is no such conversation
        """
        models = await self.models.models(conversation) or self._means.models
        model = models.find_by_name(None)
        return ContextSize(
            tokens=(await self.context(conversation)).tokens,
            window=None if model is None else self._means.compactions.window(model),
        )

    async def request_of(self, turn: TurnId, step: int) -> Sent:
        """
        What a model was sent for a step of a turn, made again from the store; needs no owner.

        :raises NotFound: if there is no such turn, or no request for this step is stored
        :raises Refused: if nothing was sent: the step failed before its request
        :raises SettingsError: if the model that was asked cannot be used here any more
        """
        return await request_of(self._means, turn, step)

    async def maintain(self, *, dry_run: bool = False) -> Maintained:
        """Do now what is done once a minute; with ``dry_run`` only say what it would be."""
        if dry_run:
            return await would_maintain(self._store, self._means.reset)
        return await maintain(self._store, self._means.reset)

    async def approvals(self, conversation: ConversationId) -> Sequence[Approval]:
        """The questions that wait for a person's word."""
        return await self._store.read(approvals.list_open_approvals, conversation)

    async def questions(self, conversation: ConversationId) -> Sequence[NumberedApproval]:
        """The questions that wait for a person's word, with their numbers."""
        return await self._store.read(approvals.list_questions, conversation)

    async def approval(self, approval: ApprovalId) -> Approval:
        """:raises NotFound: if there is no such question"""
        return await self._store.read(approvals.get_approval, approval)

    async def answer(
        self, approval: ApprovalId, *, yes: bool, by: str | None = None, note: str | None = None
    ) -> Approval:
        """
        Answer a question; the first answer counts.

        :raises NotFound: if there is no such question
        :raises WrongMove: if it was answered or has expired
        """
        state = ApprovalState.APPROVED if yes else ApprovalState.DENIED
        answered = await self._store.write(
            approvals.answer_approval, approval, state, answered_by=by, note=note
        )
        self._owner.kick(answered.conversation_id)
        return answered

    async def queue(self, conversation: ConversationId) -> Sequence[InboxItem]:
        """The inputs that wait, in order."""
        return await self._store.read(inbox.list_open_items, conversation)

    async def input(self, inbox_id: InboxId) -> InboxItem:
        """:raises NotFound: if nothing was accepted under this id"""
        return await self._store.read(inbox.get_item, inbox_id)

    async def cancel_input(self, inbox_id: InboxId) -> bool:
        """Take a waiting input back; ``False`` if it was consumed already."""
        return await self._store.write(inbox.cancel_item, inbox_id, note="taken back")

    async def edit_input(self, inbox_id: InboxId, text: str) -> bool:
        """
        Change the text of a waiting message; ``False`` if it was consumed, or is no message.

        :raises UsageError: if the text is empty or too long
        """
        return await self._store.write(inbox.edit_message, inbox_id, checked_text(text))
