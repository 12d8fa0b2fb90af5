"""
The engine: the operations that fronts call.

A front parses its input, calls one method here and shows the result. The engine holds
lifetimes and owns no rule: rules are in ``clew.core``, writes are decided in
``clew.store.transactions``.
"""

from __future__ import annotations

from contextlib import aclosing
from datetime import timedelta
from typing import TYPE_CHECKING, Self

from clew.agent.tool_listing import list_agent_tools
from clew.agent.tool_names import list_tool_names
from clew.config.workspaces import name_place
from clew.core import scope as scopes
from clew.core import session as reasons
from clew.core.access import AccessDecision, AccessRefused
from clew.core.approval import ApprovalState
from clew.core.context_view import ContextSize
from clew.core.double_text import DoubleText
from clew.core.events import InputCompleted
from clew.core.ids import ConversationId, looks_like_id
from clew.core.inbox import NewInput
from clew.core.route import Route, local_route
from clew.core.turn import StopRequest
from clew.engine.channel_inbox import ChannelInbox
from clew.engine.channel_storage import StoreChannelStorage
from clew.engine.client_registry import ClientRegistry
from clew.engine.deliveries import DeliveryQueue
from clew.engine.event_stream import stream_events
from clew.engine.grants import GrantService
from clew.engine.input_stream import read_input_result, stream_input
from clew.engine.maintenance import MaintenanceReport, preview_maintenance, run_maintenance
from clew.engine.metrics import EngineMetrics
from clew.engine.named_locks import NamedLocks
from clew.engine.pairing import PairingService
from clew.engine.process import EngineProcess
from clew.engine.queries import ConversationQueries
from clew.engine.recorded_requests import find_request
from clew.engine.replay_service import ReplayService
from clew.engine.request_service import ClientHistory, RequestService, build_history_key
from clew.engine.response_service import ResponseService
from clew.engine.run_service import RunService
from clew.engine.session_service import SessionService
from clew.engine.turn_tracing import write_traceparent
from clew.engine.validation import validate_message
from clew.engine.workspace_pruning import prune_workspace_writes
from clew.store.transactions import (
    approvals,
    inbox,
    resets,
    submissions,
    turn_queries,
)
from clew.store.transactions.attachments import add_file_details

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from datetime import datetime
    from types import TracebackType

    from clew.agent.messages import ModelMessage
    from clew.core.approval import Approval, NumberedApproval
    from clew.core.attachments import FetchedFile
    from clew.core.events import ConversationEvent
    from clew.core.grant import GrantTerm
    from clew.core.health import ChannelHealth
    from clew.core.ids import ApprovalId, InboxId, OwnerId, SessionId, TurnId
    from clew.core.inbox import AcceptResult, IdempotencyKey, InboxItem
    from clew.core.listed_tool import ListedTool
    from clew.core.scope import Scope
    from clew.core.turn import Turn
    from clew.engine.compaction import Compacted
    from clew.engine.recorded_requests import RecordedRequest
    from clew.engine.request_service import EarlierInput
    from clew.engine.services import EngineServices


class Engine(ConversationQueries):
    """
    The engine of one process over a store.

    Inside ``async with`` it works on due conversations, as an owner of its own; leaving it
    releases running turns to the next owner. ``role`` names the front for people (serve,
    chat …). With ``own_only`` it works only on conversations that received an input here,
    as a one-shot command should.
    """

    def __init__(
        self,
        means: EngineServices,
        *,
        role: str,
        version: str,
        own_only: bool = False,
    ) -> None:
        super().__init__(means.store, undelete_for=means.undelete_for)
        self._services = means
        self._event_bus, self._ids = means.event_bus, means.ids
        self._process = EngineProcess(means, role=role, version=version, own_only=own_only)
        means.feature_context.waker.connect(self._process.wake)
        self.requests = RequestService(means)
        self.responses = ResponseService(means)
        self.runs = RunService(means.store)
        self.clients = ClientRegistry(means, self._process.id, self._process.wake)
        self.sessions = SessionService(means, self._process.id, self._process.wake)
        self.replays = ReplayService(means)
        self.titles = means.titles
        self.features = means.features
        #: The services of features.
        self.feature_context = means.feature_context
        self.model_overrides = means.model_overrides
        self.channel_inbox = ChannelInbox(means, self._process.id, self._process.wake)
        self.deliveries = DeliveryQueue(means.store, means.ids, self._process.id)
        self.grants = GrantService(means.store)
        self.pairing = PairingService(means.store, means.ids, means.session_ids)
        self.locks = NamedLocks(means.store, self._process.id)
        self.channels: dict[str, ChannelHealth] = {}
        self.metrics = EngineMetrics(means.store, means.event_bus, self._process.id)

    def get_channel_storage(self, channel: str) -> StoreChannelStorage:
        """Return the persistent storage of a channel, by the name of its table."""
        return StoreChannelStorage(self._services.store, f"channel:{channel}")

    @property
    def tools(self) -> tuple[str, ...]:
        """Return the names of the agent's tools."""
        loop = self._services.loop
        return list_tool_names(loop.agent, loop.toolsets)

    def list_own_tools(self) -> list[ListedTool]:
        """Return the tools of the agent itself, without those of features."""
        return list_agent_tools(self._services.loop.agent)

    @property
    def is_traced(self) -> bool:
        """Return whether turns are traced."""
        return self._services.tracing.is_active

    @property
    def owner_id(self) -> OwnerId:
        """Return the id of this process, as leases name it."""
        return self._process.id

    async def __aenter__(self) -> Self:
        await self._process.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._process.__aexit__(exc_type, exc, traceback)

    # Operations for fronts

    def parse_target(self, name: str) -> Route | ConversationId:
        """
        Return the target of an input for ``name``.

        An id stays an id; a NAME is a local route, created on first use, and a session key its
        route.

        :raises UsageError: if the name can be none of them, or the key names no agent
        """
        if name.startswith("agent:"):
            route = Route.parse(name)
            self._services.agents.check_name(route.agent)
            return route
        if looks_like_id(name):
            return ConversationId(name)
        return local_route(name)

    def new_input(
        self,
        text: str,
        *,
        double_text: DoubleText = DoubleText.QUEUE,
        key: IdempotencyKey | None = None,
        files: Sequence[FetchedFile] = (),
    ) -> NewInput:
        """
        Return a message for ``submit``, with an id of its own.

        :raises UsageError: if the text is empty or too long
        """
        payload, hold = write_traceparent("{}"), timedelta()
        if files:
            readers = self._services.file_readers
            payload, hold = readers.mark(add_file_details(payload, files), files)
        return NewInput(
            id=self._ids.new_inbox_id(),
            text=validate_message(text),
            double_text=double_text,
            payload=payload,
            hold=hold,
            key=key,
            files=files,
            untrusted=bool(files),
        )

    async def submit(
        self,
        message: NewInput | str,
        *,
        target: Route | ConversationId | ClientHistory | EarlierInput,
    ) -> AcceptResult:
        """
        Accept a message: on return it is stored and will have an outcome.

        Any session id of a conversation is accepted as its id. With a ``ClientHistory`` the
        message continues the conversation with that context, else a new one that contains
        it; with an ``EarlierInput`` it continues after the answer to that. The same id, event
        or key is accepted once; the result of a repetition is the first one, with its
        answer if that was stored.

        :raises UsageError: if a plain text is empty or too long
        :raises KeyReused: if the key belongs to another request
        :raises NotFound: if the target is an unknown id
        :raises AccessRefused: if the sender has no access in this chat
        """
        item = self.new_input(message) if isinstance(message, str) else message
        accepted = await self._store.write(
            submissions.submit_input,
            item,
            target=build_history_key(target, item) if isinstance(target, ClientHistory) else target,
            new_conversation=self._ids.new_conversation_id(),
            session_ids=self._services.session_ids,
            policy=self._services.reset_policy,
        )
        if isinstance(accepted, AccessDecision):
            raise AccessRefused(accepted)
        if accepted.outcome is None:
            self._process.wake(accepted.conversation_id)
            if item.hold:
                self._services.file_readers.wake()
        return accepted

    def wake_conversation(self, conversation: ConversationId) -> None:
        """Work on a conversation as if it had received an input here."""
        self._process.wake(conversation)

    async def wait_until_idle(self) -> None:
        """Wait until nothing is being worked on here, ignoring work that waits for others."""
        await self._process.wait_until_idle()

    def stream_events(
        self,
        conversation: ConversationId,
        *,
        after: int,
        live: bool = True,
        with_standing: bool = False,
    ) -> AsyncGenerator[ConversationEvent]:
        """
        Yield every entry above ``after`` in order, without gap or repeat, and live events.

        Never ends. See ``clew.engine.event_stream.stream_events``.
        """
        return stream_events(
            self._store,
            self._event_bus,
            conversation,
            after=after,
            live=live,
            with_standing=with_standing,
        )

    def stream_input(
        self, accepted: AcceptResult, *, live: bool = True, with_standing: bool = False
    ) -> AsyncGenerator[ConversationEvent | InputCompleted]:
        """
        Yield the live events of the turn that answers an input, then ``InputCompleted``.

        Without ``live`` no model stream is requested, and no pieces of the answer arrive.
        See ``clew.engine.input_stream.stream_input``.
        """
        return stream_input(
            self._store,
            self._event_bus,
            accepted.conversation_id,
            accepted.inbox_id,
            live=live,
            with_standing=with_standing,
        )

    async def wait_for_input(self, filed: AcceptResult) -> InputCompleted:
        """Wait for the result of an input, whichever process works on it."""
        events = stream_input(
            self._store, self._event_bus, filed.conversation_id, filed.inbox_id, live=False
        )
        async with aclosing(events):
            async for event in events:
                if isinstance(event, InputCompleted):
                    return event
        raise AssertionError("an input has an end")

    async def get_input_result(self, inbox_id: InboxId) -> InputCompleted | None:
        """Return the result of an input; ``None`` while it is open."""
        return await self._store.read(read_input_result, inbox_id)

    async def request_stop(
        self, conversation: ConversationId, stop: StopRequest = StopRequest.STOP
    ) -> bool:
        """
        Ask the running turn to stop; return ``False`` if none is running.

        A stop by a person also reaches what features run for the conversation.
        """
        turn = await self._store.read(turn_queries.find_unfinished_turn, conversation)
        stopped = turn is not None and await self._store.write(
            turn_queries.request_stop, turn.id, stop
        )
        if stop is not StopRequest.STOP:
            return stopped
        return await self._store.write(self._services.observers.stop_work, conversation) or stopped

    async def get_unfinished_turn(self, conversation: ConversationId) -> Turn | None:
        return await self._store.read(turn_queries.find_unfinished_turn, conversation)

    async def start_new_conversation(
        self, route: Route, *, reason: str = reasons.RESET
    ) -> ConversationId:
        """
        Move a route to a new conversation; the old one ends through its own queue.

        Its running turn is asked to stop, and its queued inputs from this route are
        cancelled.
        """
        new = self._ids.new_conversation_id()
        old = await self._store.write(
            resets.start_new_conversation,
            route,
            item=self._ids.new_inbox_id(),
            new_conversation=new,
            session_ids=self._services.session_ids,
            reason=reason,
        )
        if old is not None:
            self._process.wake(old)
        return new

    async def delete_conversation(
        self, conversation: ConversationId, *, viewer: Scope = scopes.LOCAL, at_once: bool = False
    ) -> datetime | None:
        """Delete as ``ConversationQueries.delete_conversation``, and drop the cached context."""
        until = await super().delete_conversation(conversation, viewer=viewer, at_once=at_once)
        self._services.context_cache.drop_context(conversation)
        return until

    async def queue_rewind(self, conversation: ConversationId, *, to: int) -> AcceptResult:
        """Queue a rewind, as ``sessions.queue_rewind``."""
        return await self.sessions.queue_rewind(conversation, to=to)

    async def queue_close(self, conversation: ConversationId, *, reason: str) -> AcceptResult:
        """Queue the end of the session, as ``sessions.queue_close``."""
        return await self.sessions.queue_close(conversation, reason=reason)

    async def compact(
        self,
        session_id: SessionId,
        messages: Sequence[ModelMessage] | None = None,
        *,
        focus: str | None = None,
        holder: str | None = None,
    ) -> Compacted:
        """Compact a conversation outside a turn, as ``sessions.compact``."""
        return await self.sessions.compact(session_id, messages, focus=focus, holder=holder)

    async def get_context_size(self, conversation: ConversationId) -> ContextSize:
        """
        Return the size of the next request's context, and its limit.

        :raises NotFound: if there is no such conversation
        """
        models = await self.model_overrides.get_model_chain(conversation) or self._services.models
        model = models.find_by_name(None)
        return ContextSize(
            tokens=(await self.inspect_context(conversation)).tokens,
            window=None if model is None else self._services.compaction.get_context_window(model),
        )

    async def find_recorded_request(self, turn: TurnId, step: int) -> RecordedRequest:
        """
        Return the request of a turn's step, rebuilt from the store; needs no owner.

        :raises NotFound: if there is no such turn, or no request for this step is stored
        :raises OperationRefused: if nothing was sent: the step failed before its request
        :raises SettingsError: if its model cannot be used here any more
        """
        return await find_request(self._services, turn, step)

    async def run_maintenance(self, *, dry_run: bool = False) -> MaintenanceReport:
        """Run the maintenance of each minute now; with ``dry_run`` only report what is due."""
        if dry_run:
            return await preview_maintenance(self._store, self._services.reset_policy)
        place = name_place(self._services.feature_context.settings)
        await prune_workspace_writes(self._store, place)
        return await run_maintenance(self._store, self._services.reset_policy)

    async def list_approvals(self, conversation: ConversationId) -> Sequence[Approval]:
        """Return the open approvals of a conversation."""
        return await self._store.read(approvals.list_open_approvals, conversation)

    async def list_questions(self, conversation: ConversationId) -> Sequence[NumberedApproval]:
        """Return the open approval questions with their numbers."""
        return await self._store.read(approvals.list_questions, conversation)

    async def get_approval(self, approval: ApprovalId) -> Approval:
        """
        Return an approval.

        :raises NotFound: if there is no such approval
        """
        return await self._store.read(approvals.get_approval, approval)

    async def answer_approval(
        self,
        approval: ApprovalId,
        *,
        yes: bool,
        by: str | None = None,
        note: str | None = None,
        keep: GrantTerm | None = None,
    ) -> Approval:
        """
        Answer an approval question; the first answer counts.

        With ``keep``, what the question offered is allowed for longer.

        :raises NotFound: if there is no such question, or it offered nothing to keep
        :raises InvalidTransition: if it was answered or has expired
        """
        state = ApprovalState.APPROVED if yes else ApprovalState.DENIED
        answered = await self._store.write(
            approvals.answer_approval, approval, state, answered_by=by, note=note, keep=keep
        )
        self._process.wake(answered.conversation_id)
        return answered

    async def list_queue(self, conversation: ConversationId) -> Sequence[InboxItem]:
        """Return the queued inputs of people, in order."""
        items = await self._store.read(inbox.list_open_items, conversation)
        return [item for item in items if not item.is_internal]

    async def get_input(self, inbox_id: InboxId) -> InboxItem:
        """
        Return an accepted input.

        :raises NotFound: if nothing was accepted under this id
        """
        return await self._store.read(inbox.get_item, inbox_id)

    async def cancel_input(self, inbox_id: InboxId) -> bool:
        """Cancel a queued input; return ``False`` if it was consumed already."""
        return await self._store.write(inbox.cancel_item, inbox_id, note="taken back")

    async def edit_input(self, inbox_id: InboxId, text: str) -> bool:
        """
        Change the text of a queued message; return ``False`` if consumed or no message.

        :raises UsageError: if the text is empty or too long
        """
        return await self._store.write(inbox.edit_message, inbox_id, validate_message(text))
