"""The router: what a channel tells, stored before it is acknowledged, chat by chat in order."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import structlog

from clew.core.chat import (
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
from clew.core.inbox import AcceptResult, InboxOutcome
from clew.core.people import AccessDecision, AccessPolicy, is_operator
from clew.core.route import Route
from clew.core.scope import scope_of
from clew.engine.hearing import ChangeOutcome, ChannelActor, FetchedFile
from clew.engine.log_throttle import LogThrottle
from clew.engine.slash import find_command, is_command
from clew.errors import ChannelError, ClewError, OutcomeUnknown, StoreError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Sequence

    from clew.core.double_text import DoubleText
    from clew.core.inbox import InboxItem
    from clew.engine.engine import Engine
    from clew.gateway.line import Line
    from clew.gateway.progress import Progress

log = structlog.get_logger(__name__)

#: A change of a message that was never heard counts as a new one for so long.
_NEW_FOR = timedelta(hours=1)
#: Seconds after which the store is asked again to take what was heard.
_PAUSE = 0.5
#: Seconds in which one line of the log says that somebody was turned away.
_TURNED_AWAY = 3600.0
#: Control commands whose answer decides what a tool may do.
_TRUSTED = frozenset({"approve", "deny"})

CUT_OFF = (
    "A restart came before the answer to {command}: whether it was carried out is not known here. "
    "/status shows how things are."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Manners:
    """How a channel deals with what it hears."""

    policy: AccessPolicy
    double_text: DoubleText
    #: In a group each person has a conversation of their own.
    apart: bool = False
    #: Bytes of the largest file that is fetched, and the kinds that are: ``image/*``.
    largest_file: int = 20_000_000
    file_types: tuple[str, ...] = ("*",)


class Router:
    """Takes in the events of one account."""

    def __init__(self, engine: Engine, line: Line, progress: Progress, manners: Manners) -> None:
        self._engine, self._line, self._progress = engine, line, progress
        self._manners, self._account = manners, line.account
        self._tasks: set[asyncio.Task[None]] = set()
        self._strangers = LogThrottle(interval=_TURNED_AWAY)
        self._unknown = LogThrottle(interval=math.inf)
        self._throttle = LogThrottle()

    async def begin(self) -> None:
        """Go on with what a process that died had taken in and not finished."""
        await self._engine.pairing.apply_policy(self._account, self._manners.policy)
        for command in await self._engine.channel_inbox.list_interrupted_commands():
            if self._is_ours(command):
                told = CUT_OFF.format(command=command.text.split()[0])
                await self._engine.channel_inbox.end_command(command.id, told)
        for item in await self._engine.channel_inbox.list_awaiting_files():
            if self._is_ours(item):
                self._spawn(self._fetch_again(item))

    def _is_ours(self, item: InboxItem) -> bool:
        account = json.loads(item.payload).get("account")
        return account == [self._account.channel, self._account.account]

    async def close(self, seconds: float) -> None:
        """Let commands and files end, but not for long."""
        if tasks := list(self._tasks):
            await asyncio.wait(tasks, timeout=seconds)
        for task in (tasks := list(self._tasks)):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def take(self, events: Sequence[ChannelEvent]) -> None:
        """Store a batch: when this returns, all of it may be acknowledged."""
        chats: dict[str, list[ChannelEvent]] = {}
        for event in events:
            chats.setdefault(event.route.chat, []).append(event)
        if len(chats) == 1:
            await self._take_chat(events)
        elif chats:
            await asyncio.gather(*(self._take_chat(each) for each in chats.values()))

    async def _take_chat(self, events: Iterable[ChannelEvent]) -> None:
        for event in events:
            await self._take_until_stored(event)

    async def _take_until_stored(self, event: ChannelEvent) -> None:
        while True:
            try:
                await self._take(event)
            except StoreError as error:
                # Not acknowledged, so it is not lost; nothing later of this chat passes it.
                self._throttle.warn_store_failure(
                    log, "not_stored", error, channel=self._account.channel
                )
                await asyncio.sleep(_PAUSE)
            except Exception:
                # A fault of ours: told again and again, it would keep all later ones away.
                log.exception("event_not_taken", channel=self._account.channel, id=event.event)
                return
            else:
                return

    async def _take(self, event: ChannelEvent) -> None:
        match event:
            case MessageEdited():
                await self._changed(event)
            case MessageReceived():
                await self._heard(event)
            case MessageDeleted():
                await self._deleted(event)
            case ButtonPressed():
                await self._pressed(event)
            case ChatMigrated():
                await self._engine.channel_inbox.migrate_route(event.route, event.to)

    def _who(self, heard: MessageReceived, *, trusted: bool = False) -> ChannelActor:
        return ChannelActor(
            account=self._account,
            user=heard.sender.id,
            policy=self._manners.policy,
            addressed=heard.addressed,
            trusted=trusted,
        )

    def _route(self, heard: MessageReceived) -> Route:
        if self._manners.apart and heard.route.kind != DM:
            return replace(heard.route, user=heard.sender.id)
        return heard.route

    # What is said

    async def _heard(self, heard: MessageReceived) -> None:
        if heard.may_command and is_command(heard.text):
            await self._command(heard)
            return
        self._log_unsupported(heard)
        route = self._route(heard)
        found = await self._engine.channel_inbox.receive_message(
            heard, who=self._who(heard), route=route, double_text=self._manners.double_text
        )
        if not isinstance(found, AcceptResult):
            await self._turned_away(heard, found)
            return
        if found.duplicate or found.outcome is InboxOutcome.REJECTED:
            return
        if heard.files:
            self._spawn(self._fetch(found, route, heard.files))
        self._progress.follow(route, found, message=heard.message)

    def _log_unsupported(self, heard: MessageReceived) -> None:
        for kind in heard.unsupported:
            if self._unknown.is_due(kind):
                channel = self._account.channel
                log.warning("content_not_supported", channel=channel, kind=kind)

    async def _turned_away(self, heard: MessageReceived, verdict: AccessDecision) -> None:
        chat = None if heard.route.kind == DM else heard.route.chat
        if self._strangers.is_due((heard.sender.id, chat)):
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
            # In the background: a stranger holds nobody up.
            self._spawn(self._show_code(heard, code))

    async def _show_code(self, heard: MessageReceived, code: str) -> None:
        """Show a code; one that was not shown is soon void, and the next message gets another."""
        text = (
            f"This assistant does not know you yet. Your code is {code}: whoever runs it lets "
            f"you in with\n\nclew pair approve {code}\n\nIt is good for one hour."
        )
        people, user = self._engine.pairing, heard.sender.id
        try:
            for chunk in self._line.channel.render(OutboundMessage(text=text, markup=False)):
                await self._line.tell(heard.route, chunk, key=f"code:{heard.event}")
        except OutcomeUnknown as error:
            # It may have been shown: it stays good, but not for long.
            log.info("code_not_confirmed", user=user, error=str(error))
        except ChannelError as error:
            log.info("code_not_shown", user=user, error=str(error))
            await people.withdraw_code(self._account, user)
        else:
            await people.confirm_code_shown(self._account, user)

    async def _command(self, heard: MessageReceived) -> None:
        route = self._route(heard)
        named = find_command(heard.text.strip()[1:].split(maxsplit=1)[0].partition("@")[0])
        who = self._who(heard, trusted=named is not None and named.name in _TRUSTED)
        found = await self._engine.channel_inbox.begin_command(heard, who=who, route=route)
        if not isinstance(found, AcceptResult):
            await self._turned_away(heard, found)
            return
        if found.duplicate:
            return
        filed = asyncio.Event()
        self._spawn(self._carry_out(heard, found, route, who, filed))
        # What is said next comes after it, but does not wait until it is done.
        await filed.wait()

    async def _carry_out(
        self,
        heard: MessageReceived,
        command: AcceptResult,
        route: Route,
        who: ChannelActor,
        filed: asyncio.Event,
    ) -> None:
        try:
            text, accepted = await self._replied(heard, command, route, who, filed)
            await self._ended(command, text)
        finally:
            # A command that is answered at once is answered before the next one is taken.
            filed.set()
        if accepted is not None:
            self._progress.follow(route, accepted, message=heard.message)

    async def _replied(
        self,
        heard: MessageReceived,
        command: AcceptResult,
        route: Route,
        who: ChannelActor,
        filed: asyncio.Event,
    ) -> tuple[str, AcceptResult | None]:
        """What a command came to, and the message that it handed in again."""
        try:
            reply = await self._engine.run_command(
                heard.text,
                target=route,
                viewer=scope_of(route),
                operator=await self._is_operator(who),
                who=who,
                on_filed=filed.set,
            )
        except StoreError as error:
            log.warning("command_failed", command=command.inbox_id, error=str(error))
            return "That failed: the store could not be used. Try again.", None
        except Exception:
            log.exception("command_failed", command=command.inbox_id)
            return "That failed with an internal error, which the log describes.", None
        return reply.text, reply.accepted

    async def _ended(self, command: AcceptResult, text: str) -> None:
        while True:
            try:
                await self._engine.channel_inbox.end_command(command.inbox_id, text)
            except StoreError as error:
                self._throttle.warn_store_failure(
                    log, "store_failed", error, command=command.inbox_id
                )
                await asyncio.sleep(_PAUSE)
            else:
                return

    async def _is_operator(self, who: ChannelActor) -> bool:
        if who.user not in who.policy.operators:
            return False
        standing = await self._engine.pairing.get_access_status(who.account, who.user)
        return is_operator(who.policy, standing, who.user)

    # What becomes of it on the platform

    async def _changed(self, edited: MessageEdited) -> None:
        found = await self._engine.channel_inbox.receive_change(
            edited, account=self._account, who=self._who(edited), route=self._route(edited)
        )
        if found is ChangeOutcome.RESUBMIT:
            await self._heard(edited)
        elif found is ChangeOutcome.UNKNOWN and datetime.now(UTC) - edited.sent_at < _NEW_FOR:
            # It was not meant for the agent before it was changed.
            await self._heard(edited.as_new_message)
        elif found is not ChangeOutcome.DONE and found is not ChangeOutcome.QUEUED:
            self._pass_over(edited, found)

    async def _deleted(self, deleted: MessageDeleted) -> None:
        found = await self._engine.channel_inbox.receive_change(
            deleted, account=self._account, who=None, route=deleted.route
        )
        if found is ChangeOutcome.UNKNOWN:
            self._pass_over(deleted, found)

    def _pass_over(
        self, event: MessageEdited | MessageDeleted, found: ChangeOutcome | AccessDecision
    ) -> None:
        """A message changed that was never heard, or by whom nothing is heard."""
        what = type(event).__name__.lower()
        log.debug("change_passed_over", change=what, id=event.event, reason=found.value)

    async def _pressed(self, pressed: ButtonPressed) -> None:
        who = ChannelActor(
            account=self._account,
            user=pressed.sender.id,
            policy=self._manners.policy,
            trusted=True,
        )
        done = await self._engine.channel_inbox.answer_button(pressed, who=who)
        self._spawn(self._line.answer(pressed, done.text, closed=done.closed, became=done.outcome))

    # Files

    async def _fetch(
        self, accepted: AcceptResult, route: Route, files: Sequence[IncomingFile]
    ) -> None:
        fetched = [await self._fetched(route, file) for file in files]
        await self._engine.channel_inbox.attach_files(accepted.inbox_id, fetched)

    async def _fetch_again(self, item: InboxItem) -> None:
        assert item.route is not None
        route = Route.parse(item.route)
        fetched = [await self._fetched(route, file) for file in unfetched_files(item.payload)]
        await self._engine.channel_inbox.attach_files(item.id, fetched)

    async def _fetched(self, route: Route, file: IncomingFile) -> FetchedFile:
        content, missing = None, self._refused(file)
        if missing is None:
            try:
                most = self._manners.largest_file
                content = await self._line.fetch(route, file, most=most)
            except ChannelError as error:
                log.info("file_not_fetched", chat=route.chat, error=str(error))
                missing = f"not fetched: {error}"
        return self._engine.channel_inbox.make_fetched_file(file, content, missing=missing)

    def _refused(self, file: IncomingFile) -> str | None:
        if not any(_fits(file.media_type, each) for each in self._manners.file_types):
            return f"not fetched: files of the type {file.media_type} are not taken here"
        if file.size is not None and file.size > self._manners.largest_file:
            most = self._manners.largest_file
            return f"not fetched: it has {file.size:,} bytes, and {most:,} is the most"
        return None

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(_logged(work), name="router")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _fits(media_type: str, pattern: str) -> bool:
    """Whether a type is of a kind: ``image/*``, ``application/pdf``, ``*``."""
    return (
        pattern == "*"
        or media_type == pattern
        or (pattern.endswith("/*") and media_type.startswith(pattern[:-1]))
    )


async def _logged(work: Coroutine[object, object, None]) -> None:
    try:
        await work
    except ClewError as error:
        log.warning("task_failed", error=str(error))
    except Exception:
        log.exception("task_failed")
