"""The router: stores a channel's events before they are acknowledged, in order per chat."""

from __future__ import annotations

import asyncio
import json
import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import structlog

from clew.background import cancel_and_wait
from clew.commands.registry import ChatCommandReply
from clew.commands.runner import CommandRunner
from clew.core.access import AccessDecision, AccessPolicy, AccessRefused, ButtonOutcome, is_operator
from clew.core.channel_events import (
    DM,
    ButtonPressed,
    ChannelEvent,
    ChatMigrated,
    IncomingFile,
    MessageDeleted,
    MessageEdited,
    MessageReceived,
    OutboundMessage,
    unfetched_files,
)
from clew.core.command_text import COMMAND_PATTERN, is_command
from clew.core.inbox import AcceptResult, InboxOutcome
from clew.core.message_order import WrittenMessage
from clew.core.route import MAIN_AGENT, Route
from clew.core.scope import scope_of
from clew.engine.channel_inbox import ChangeOutcome, ChannelActor, FetchedFile
from clew.engine.log_throttle import LogThrottle
from clew.errors import ChannelError, ClewError, OutcomeUnknown, StoreError
from clew.record import Record, replace
from clew.wording import format_approval_state, format_button_reply

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Sequence

    from clew.commands.registry import ChatCommand, CommandRegistry
    from clew.core.double_text import DoubleText
    from clew.core.inbox import InboxItem
    from clew.engine.engine import Engine
    from clew.gateway.platform_client import PlatformClient
    from clew.gateway.preview_streamer import PreviewStreamer

log = structlog.get_logger(__name__)

#: An edit of a message that was never accepted counts as a new message for so long.
_EDIT_AS_NEW_WINDOW = timedelta(hours=1)
#: Seconds after which storing an event is retried.
_STORE_RETRY_PAUSE = 0.5
#: Seconds between two log lines about one rejected sender.
_REJECTION_LOG_INTERVAL = 3600.0
#: Presses of a person whose answer does not count.
_REFUSED_PRESSES = frozenset(
    {ButtonOutcome.NO_ACCESS, ButtonOutcome.NOT_ALLOWED, ButtonOutcome.WRONG_CHAT}
)
#: Control commands that decide about tool calls.
_TRUSTED_COMMANDS = frozenset({"approve", "deny"})

INTERRUPTED_NOTICE = (
    "A restart came before the answer to {command}, so it may or may not have been carried out. "
    "/status shows the current state."
)


class ChannelPolicy(Record):
    """The rules by which a channel treats incoming messages."""

    access_policy: AccessPolicy
    double_text: DoubleText
    #: In groups each person has a separate conversation.
    per_user_groups: bool = False
    #: The agent of its chats.
    agent: str = MAIN_AGENT
    #: Bytes of the largest file that is fetched, and the accepted types: ``image/*``.
    largest_file: int = 20_000_000
    file_types: tuple[str, ...] = ("*",)


class Router:
    """Accepts the events of one account."""

    def __init__(
        self,
        engine: Engine,
        line: PlatformClient,
        progress: PreviewStreamer,
        manners: ChannelPolicy,
        commands: CommandRegistry,
    ) -> None:
        self._engine, self._line, self._progress = engine, line, progress
        self._commands, self._command_runner = commands, CommandRunner(engine, commands)
        self._policy, self._account = manners, line.account
        self._tasks: set[asyncio.Task[None]] = set()
        self._rejection_throttle = LogThrottle(interval=_REJECTION_LOG_INTERVAL)
        self._unsupported_throttle = LogThrottle(interval=math.inf)
        self._throttle = LogThrottle()

    async def recover(self) -> None:
        """Resume the commands and downloads that a dead process left unfinished."""
        await self._engine.pairing.apply_policy(self._account, self._policy.access_policy)
        for command in await self._engine.channel_inbox.list_interrupted_commands():
            if self._is_ours(command):
                told = self._describe_interrupted(command.text)
                await self._engine.channel_inbox.end_command(command.id, told)
        for item in await self._engine.channel_inbox.list_awaiting_files():
            # Others wait for the texts of files that are there.
            if self._is_ours(item) and unfetched_files(item.payload):
                self._spawn_task(self._refetch_files(item))

    def _describe_interrupted(self, text: str) -> str:
        """Return the reply to a command to which the process before this one did not reply."""
        command = self._find_command(text)
        if command is not None and command.interrupted_reply is not None:
            return command.interrupted_reply
        return INTERRUPTED_NOTICE.format(command=text.split(maxsplit=1)[0])

    def _find_command(self, text: str) -> ChatCommand | None:
        match = COMMAND_PATTERN.fullmatch(text.strip())
        return self._commands.find_command(match[1]) if match else None

    def _is_ours(self, item: InboxItem) -> bool:
        account = json.loads(item.payload).get("account")
        return account == [self._account.channel, self._account.account]

    async def close(self, seconds: float) -> None:
        """Let commands and downloads finish for ``seconds``, then cancel them."""
        if tasks := list(self._tasks):
            await asyncio.wait(tasks, timeout=seconds)
        await cancel_and_wait(*self._tasks)

    async def accept_batch(self, events: Sequence[ChannelEvent]) -> None:
        """Store a batch of events; on return all of them may be acknowledged."""
        chats: dict[str, list[ChannelEvent]] = {}
        for event in events:
            chats.setdefault(event.route.chat, []).append(event)
        if len(chats) == 1:
            await self._accept_chat(events)
        elif chats:
            await asyncio.gather(*(self._accept_chat(each) for each in chats.values()))

    async def _accept_chat(self, events: Iterable[ChannelEvent]) -> None:
        for event in events:
            await self._accept_until_stored(event)

    async def _accept_until_stored(self, event: ChannelEvent) -> None:
        while True:
            try:
                await self._accept_event(event)
            except StoreError as error:
                # Unacknowledged, so not lost; no later event of this chat overtakes it.
                self._throttle.warn_store_failure(
                    log, "not_stored", error, channel=self._account.channel
                )
                await asyncio.sleep(_STORE_RETRY_PAUSE)
            except Exception:
                # A bug of ours: redelivered for ever, the event would block all later ones.
                log.exception("event_not_taken", channel=self._account.channel, id=event.event)
                return
            else:
                return

    async def _accept_event(self, told: ChannelEvent) -> None:
        event = replace(told, route=replace(told.route, agent=self._policy.agent))
        if isinstance(event, MessageReceived):
            event = await self._engine.channel_inbox.filter_message(event)
        if event is None:
            return
        match event:
            case MessageEdited():
                await self._accept_edit(event)
            case MessageReceived():
                await self._accept_message(event)
            case MessageDeleted():
                await self._accept_deletion(event)
            case ButtonPressed():
                await self._accept_button(event)
            case ChatMigrated():
                await self._engine.channel_inbox.migrate_route(event.route, event.to)

    def _sender_of(self, heard: MessageReceived, *, trusted: bool = False) -> ChannelActor:
        return ChannelActor(
            account=self._account,
            user=heard.sender.id,
            policy=self._policy.access_policy,
            addressed=heard.addressed,
            trusted=trusted,
        )

    def _route_of(self, heard: MessageReceived) -> Route:
        if self._policy.per_user_groups and heard.route.kind != DM:
            return replace(heard.route, user=heard.sender.id)
        return heard.route

    # Messages

    async def _accept_message(self, heard: MessageReceived) -> None:
        if heard.may_command and is_command(heard.text):
            await self._start_command(heard)
            return
        self._log_unsupported(heard)
        route = self._route_of(heard)
        message = self._engine.channel_inbox.build_message(
            heard, who=self._sender_of(heard), route=route, double_text=self._policy.double_text
        )
        try:
            found = await self._engine.submit(message, target=route)
        except AccessRefused as refused:
            await self._handle_rejection(heard, refused.decision)
            return
        if found.duplicate or found.outcome is InboxOutcome.REJECTED:
            return
        if heard.files:
            self._spawn_task(self._fetch_files(found, route, heard.files))
        self._progress.follow_input(route, found, message=heard.message)

    def _log_unsupported(self, heard: MessageReceived) -> None:
        for kind in heard.unsupported:
            if self._unsupported_throttle.is_due(kind):
                channel = self._account.channel
                log.warning("content_not_supported", channel=channel, kind=kind)

    async def _handle_rejection(self, heard: MessageReceived, verdict: AccessDecision) -> None:
        chat = None if heard.route.kind == DM else heard.route.chat
        if self._rejection_throttle.is_due((heard.sender.id, chat)):
            tell = log.info if heard.addressed else log.debug
            tell(
                "turned_away",
                channel=self._account.channel,
                user=heard.sender.id,
                chat=heard.route.chat,
                verdict=verdict.value,
            )
        if verdict is not AccessDecision.OFFER_PAIRING:
            return
        people, user = self._engine.pairing, heard.sender.id
        code = await people.issue_code(
            self._account, user, name=heard.sender.name, route=heard.route.key
        )
        if code is not None:
            # In the background: an unknown sender delays no other.
            self._spawn_task(self._send_pairing_code(heard, code))

    async def _send_pairing_code(self, heard: MessageReceived, code: str) -> None:
        """
        Send a pairing code.

        A code that was not shown expires soon, and the next message gets another one.
        """
        text = (
            f"You do not have access to this assistant yet. Your code is {code}: the operator "
            f"grants access with\n\nclew pair approve {code}\n\nIt is valid for one hour."
        )
        people, user = self._engine.pairing, heard.sender.id
        try:
            for chunk in self._line.channel.render(OutboundMessage(text=text, markup=False)):
                await self._line.send_untracked(heard.route, chunk, key=f"code:{heard.event}")
        except OutcomeUnknown as error:
            # It may have been shown: it stays valid, but not for long.
            log.info("code_not_confirmed", user=user, error=str(error))
        except ChannelError as error:
            log.info("code_not_shown", user=user, error=str(error))
            await people.withdraw_code(self._account, user)
        else:
            await people.confirm_code_shown(self._account, user)

    async def _start_command(self, heard: MessageReceived) -> None:
        route = self._route_of(heard)
        named = self._find_command(heard.text)
        who = self._sender_of(heard, trusted=named is not None and named.name in _TRUSTED_COMMANDS)
        found = await self._engine.channel_inbox.begin_command(heard, who=who, route=route)
        if not isinstance(found, AcceptResult):
            await self._handle_rejection(heard, found)
            return
        if found.duplicate:
            return
        filed = asyncio.Event()
        self._spawn_task(self._run_command(heard, found, route, who, filed))
        # The next message follows the command but does not wait for its end.
        await filed.wait()

    async def _run_command(
        self,
        heard: MessageReceived,
        command: AcceptResult,
        route: Route,
        who: ChannelActor,
        filed: asyncio.Event,
    ) -> None:
        try:
            reply = await self._execute_command(heard, command, route, who, filed)
            if not reply.replies_after_restart:
                await self._store_reply(command, reply.text)
        finally:
            # An immediate command is answered before the next event is accepted.
            filed.set()
        if reply.accepted is not None:
            self._progress.follow_input(route, reply.accepted, message=heard.message)

    async def _execute_command(
        self,
        heard: MessageReceived,
        command: AcceptResult,
        route: Route,
        who: ChannelActor,
        filed: asyncio.Event,
    ) -> ChatCommandReply:
        """Return a command's reply; a failure has one, too."""
        try:
            return await self._command_runner.run_command(
                heard.text,
                target=route,
                viewer=scope_of(route),
                operator=await self._check_operator(who),
                who=who,
                written=WrittenMessage(
                    id=heard.message,
                    sent_at=heard.sent_at,
                    has_ordered_ids=self._line.channel.capabilities.ordered_ids,
                ),
                on_filed=filed.set,
            )
        except StoreError as error:
            log.warning("command_failed", command=command.inbox_id, error=str(error))
            return ChatCommandReply(text="That failed: the store could not be used. Try again.")
        except Exception:  # a bug of ours: the person gets an answer, the channel continues
            log.exception("command_failed", command=command.inbox_id)
            return ChatCommandReply(
                text="That failed with an internal error, which the log describes."
            )

    async def _store_reply(self, command: AcceptResult, text: str) -> None:
        while True:
            try:
                await self._engine.channel_inbox.end_command(command.inbox_id, text)
            except StoreError as error:
                self._throttle.warn_store_failure(
                    log, "store_failed", error, command=command.inbox_id
                )
                await asyncio.sleep(_STORE_RETRY_PAUSE)
            else:
                return

    async def _check_operator(self, who: ChannelActor) -> bool:
        if who.user not in who.policy.operators:
            return False
        standing = await self._engine.pairing.get_access_status(who.account, who.user)
        return is_operator(who.policy, standing, who.user)

    # Edits, deletions, buttons

    async def _accept_edit(self, edited: MessageEdited) -> None:
        found = await self._engine.channel_inbox.receive_change(
            edited, account=self._account, who=self._sender_of(edited), route=self._route_of(edited)
        )
        if found is ChangeOutcome.RESUBMIT:
            await self._accept_message(edited)
        elif (
            found is ChangeOutcome.UNKNOWN
            and datetime.now(UTC) - edited.sent_at < _EDIT_AS_NEW_WINDOW
        ):
            # Before the edit it was not addressed to the agent.
            await self._accept_message(edited.as_new_message)
        elif found is not ChangeOutcome.DONE and found is not ChangeOutcome.QUEUED:
            self._log_ignored_change(edited, found)

    async def _accept_deletion(self, deleted: MessageDeleted) -> None:
        found = await self._engine.channel_inbox.receive_change(
            deleted, account=self._account, who=None, route=deleted.route
        )
        if found is ChangeOutcome.UNKNOWN:
            self._log_ignored_change(deleted, found)

    def _log_ignored_change(
        self, event: MessageEdited | MessageDeleted, found: ChangeOutcome | AccessDecision
    ) -> None:
        """Log a change to a message that was never accepted, or by a rejected sender."""
        what = type(event).__name__.lower()
        log.debug("change_passed_over", change=what, id=event.event, reason=found.value)

    async def _accept_button(self, pressed: ButtonPressed) -> None:
        who = ChannelActor(
            account=self._account,
            user=pressed.sender.id,
            policy=self._policy.access_policy,
            trusted=True,
        )
        done = await self._engine.channel_inbox.answer_button(pressed, who=who)
        if done.outcome in _REFUSED_PRESSES:
            log.warning(
                "approval_answer_refused",
                user=pressed.sender.id,
                chat=pressed.route.chat,
                reason=done.outcome.value,
            )
        approval, state = done.approval, done.state
        became = "" if approval is None or state is None else format_approval_state(approval, state)
        reply = format_button_reply(done.outcome, became)
        self._spawn_task(
            self._line.answer_button(pressed, reply, closed=done.closed, became=became)
        )

    # Files

    async def _fetch_files(
        self, accepted: AcceptResult, route: Route, files: Sequence[IncomingFile]
    ) -> None:
        fetched = [await self._fetch_file(route, file) for file in files]
        await self._engine.channel_inbox.attach_files(accepted.inbox_id, fetched)

    async def _refetch_files(self, item: InboxItem) -> None:
        assert item.route is not None
        route = Route.parse(item.route)
        fetched = [await self._fetch_file(route, file) for file in unfetched_files(item.payload)]
        await self._engine.channel_inbox.attach_files(item.id, fetched)

    async def _fetch_file(self, route: Route, file: IncomingFile) -> FetchedFile:
        content, missing = None, self._rejection_reason(file)
        if missing is None:
            try:
                most = self._policy.largest_file
                content = await self._line.fetch_file(route, file, most=most)
            except ChannelError as error:
                log.info("file_not_fetched", chat=route.chat, error=str(error))
                missing = f"not fetched: {error}"
            except Exception:  # a fault of a channel must not keep the message back for a minute
                log.exception("file_not_fetched", chat=route.chat)
                missing = "not fetched: the channel failed"
        return self._engine.channel_inbox.make_fetched_file(file, content, missing=missing)

    def _rejection_reason(self, file: IncomingFile) -> str | None:
        if not any(_matches_type(file.media_type, each) for each in self._policy.file_types):
            return f"not fetched: files of the type {file.media_type} are not accepted here"
        if file.size is not None and file.size > self._policy.largest_file:
            most = self._policy.largest_file
            return f"not fetched: it has {file.size:,} bytes, the limit is {most:,}"
        return None

    def _spawn_task(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(_run_logged(work), name="router")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _matches_type(media_type: str, pattern: str) -> bool:
    """Return whether a media type matches a pattern: ``image/*``, ``application/pdf``, ``*``."""
    return (
        pattern == "*"
        or media_type == pattern
        or (pattern.endswith("/*") and media_type.startswith(pattern[:-1]))
    )


async def _run_logged(work: Coroutine[object, object, None]) -> None:
    try:
        await work
    except ClewError as error:
        log.warning("task_failed", error=str(error))
    except Exception:  # a failed background task must not end the channel
        log.exception("task_failed")
