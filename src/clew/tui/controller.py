"""
Controller: turns user actions into calls, and events into the view.

Holds one conversation at a time. The client reconnects by itself; the view stays and
continues after the last entry received.
"""

from __future__ import annotations

import asyncio
import base64
import mimetypes
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from clew.background import cancel_and_wait, run_in_background
from clew.core.attachments import MAX_FILE_BYTES
from clew.tui.background_commands import BackgroundCommands
from clew.tui.client import Resumed, RpcClient
from clew.tui.original_history import read_original
from clew.tui.outbox import Outbox
from clew.tui.state import reducer
from clew.tui.state.input_history import find_file_mentions
from clew.tui.state.view import LinkState, ViewState
from clew.tui.transports import ConnectionRefused
from clew.wire import methods
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.params import (
    Attachment,
    EntriesParams,
    ListParams,
    Named,
    NoParams,
    OpenParams,
    RespondParams,
    RunParams,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from pydantic import BaseModel

    from clew.tui.state.view import Block, PendingText
    from clew.tui.transports import Connect
    from clew.wire.event_models import AnyNotice
    from clew.wire.methods import RpcMethod
    from clew.wire.models import ConversationShape, EntryShape
    from clew.wire.params import DoubleTextName, Params
    from clew.wire.results import CommandReply, Opened

    R = TypeVar("R", bound=BaseModel)

#: Entries that are loaded at first, and per page before them.
PAGE_SIZE: Final = 60
#: Recently used conversations that are searched for branches.
_MAX_RELATED: Final = 100
#: Characters of a reason for the model.
_MAX_NOTE: Final = 2000
#: Entries per page on the way to a distant one.
_LARGE_PAGE_SIZE: Final = 500
#: Seconds that the server has to close the conversations on exit.
_CLOSE_TIMEOUT: Final = 2.0


class ConversationController:
    """Controller of one conversation at a time."""

    def __init__(
        self,
        connect: Connect,
        name: str,
        *,
        changed: Callable[[], None],
        refused: Callable[[str, str], None] = lambda _text, _reason: None,
    ) -> None:
        """
        Start without a connection.

        ``changed`` is called on the event loop after each change of ``view``; ``refused``
        with a sent text that the server rejected, and the reason.
        """
        self._client = RpcClient(connect, on_change=self._update_link)
        self._changed = changed
        #: The name that ``/new`` and ``/resume`` rebind.
        self.name = name
        self.view = ViewState()
        self.outbox = Outbox(changed=self._set_sending, refused=refused)
        self._following: asyncio.Task[None] | None = None
        self._refreshing: asyncio.Task[None] | None = None
        #: The conversation to which the last queued command led.
        self._led_to: ConversationShape | None = None
        #: Set while nothing runs.
        self._ended = asyncio.Event()
        self._ended.set()

    async def wait_closed(self) -> None:
        """Wait until the cancelled ``run`` has finished."""
        await self._ended.wait()

    def _set_view(self, view: ViewState) -> None:
        if view is not self.view:
            self.view = view
            self._changed()

    def _set_sending(self, items: tuple[PendingText, ...]) -> None:
        self._set_view(reducer.set_sending(self.view, items))

    def _update_link(self, is_up: bool | None) -> None:
        if is_up:
            self._set_view(reducer.mark_connected(self.view))
        else:
            why = "the server has stopped; waiting for it to come back"
            self._set_view(
                reducer.mark_disconnected(self.view, why if is_up is False else "access refused")
            )

    async def run(self) -> None:
        """
        Stay connected until cancelled.

        A fault of a background task ends it: a screen that silently stays behind misleads.
        """
        self._ended.clear()
        self._is_closing = False
        self._tasks = asyncio.TaskGroup()
        try:
            async with self._client, self._tasks, AsyncExitStack() as stack:
                stack.push_async_callback(self._shut_down)
                await self._open_initial()
                async with run_in_background(BackgroundCommands(self).run(), name="commands"):
                    await self.outbox.run()
        finally:
            self._ended.set()

    async def _shut_down(self) -> None:
        self._is_closing = True
        tasks = (self._following, self._refreshing)
        await cancel_and_wait(*(task for task in tasks if task is not None))
        await self._client.close_conversations(seconds=_CLOSE_TIMEOUT)

    async def _open_initial(self) -> None:
        while True:
            try:
                named = OpenParams(conversation=self.name)
                await self._show_conversation(await self._client.call(methods.OPEN, named))
                await self._load_agent()
            except CallFailed as error:
                if error.code != ErrorCode.DISCONNECTED:
                    self.set_error(str(error))
                    return
            except ConnectionRefused as error:
                self._set_view(reducer.mark_disconnected(self.view, str(error)))
                return
            else:
                return

    async def _load_agent(self) -> None:
        """Load the agent's description; older servers do not provide it."""
        with suppress(CallFailed):
            self._set_view(
                reducer.set_agent(self.view, await self.call(methods.DESCRIBE, NoParams()))
            )

    async def _open_conversation(self, name: str) -> Opened:
        return await self.call(methods.OPEN, OpenParams(conversation=name))

    async def _show_conversation(self, opened: Opened) -> None:
        """Show a conversation and follow it after the last entry received."""
        opened_view = partial(
            reducer.open_conversation, conversation=opened.conversation, state=opened.state
        )
        first = opened_view(self.view).first
        tail: Sequence[EntryShape] = ()
        if not opened_view(self.view).blocks and first > 1:
            given = EntriesParams(
                conversation=opened.conversation.id, before=first, limit=PAGE_SIZE
            )
            tail = (await self.call(methods.ENTRIES, given)).items
        # The view of now: what changed during the call stays.
        view = opened_view(self.view)
        if tail:
            view = reducer.prepend_entries(view, opened.conversation.id, tail, before=first)
        self._set_view(view)
        if self._is_closing:
            return
        if self._following is not None:
            self._following.cancel()
        self._following = self._tasks.create_task(
            self._follow_events(opened.conversation.id), name="follow"
        )
        if not view.blocks:
            await self.load_older()

    async def _follow_events(self, conversation: str) -> None:
        try:
            async with self._client.follow(conversation, after=self.view.seq) as events:
                self._schedule_refresh()
                async for told in events:
                    self._apply_event(told)
        except CallFailed as error:
            self.set_error(str(error))

    def _apply_event(self, told: AnyNotice | Resumed) -> None:
        if isinstance(told, Resumed):
            self._set_view(reducer.reset_live(self.view))
            return
        head = self.view.head
        self._set_view(reducer.apply_event(self.view, told))
        if self.view.head != head or told.type in ("turn_closed", "turn_begun"):
            self._schedule_refresh()

    async def call(self, method: RpcMethod[Any, R], params: Params) -> R:
        """
        Call the server; waits for it while it is unreachable.

        :raises CallFailed: if the call fails
        """
        with _refusal_as_failure():
            return await self._client.call(method, params)

    def set_error(self, text: str) -> None:
        """Show an error; "" clears it."""
        self._set_view(reducer.set_error(self.view, text))

    def set_commands(self, conversation: str, commands: tuple[str, ...]) -> None:
        """Show the commands of a conversation that go on in the background, the latest first."""
        self._set_view(reducer.set_commands(self.view, conversation, commands))

    async def switch_to(self, opened: Opened) -> None:
        """Show another conversation that this client has opened."""
        await self._show_conversation(opened)

    async def switch_to_named(self, name: str) -> None:
        """Show another conversation: by name, id, or the id of one of its sessions."""
        await self._show_conversation(await self._open_conversation(name))

    async def load_older(self, count: int = PAGE_SIZE) -> None:
        """Load entries before the first one that is loaded; in a branch also its original's."""
        conversation, first = self.view.conversation, self.view.first
        if conversation is None or first <= self.view.start:
            return
        if first > 1 or conversation.origin is None:
            wanted = EntriesParams(conversation=conversation.id, before=first, limit=count)
            entries, state = (await self.call(methods.ENTRIES, wanted)).items, None
        else:
            found = await read_original(self, conversation.origin, first=first, count=count)
            entries, state = found.entries, found.state
        self._set_view(
            reducer.prepend_entries(self.view, conversation.id, entries, before=first, state=state)
        )

    async def load_session_start(self, session: str) -> Block | None:
        """
        Load entries back to the start of a session, and return its first block.

        Returns ``None`` if the session has no entries.
        """
        while self.view.first > 1 and not self._starts_before(session):
            await self.load_older(_LARGE_PAGE_SIZE)
        return next((block for block in self.view.blocks if block.session == session), None)

    def _starts_before(self, session: str) -> bool:
        """Return whether the loaded entries start before a session."""
        conversation, blocks = self.view.conversation, self.view.blocks
        known = [one.id for one in conversation.sessions] if conversation else []
        begins = blocks[0].session if blocks else ""
        if begins not in known or session not in known:
            return session not in known
        return known.index(begins) < known.index(session)

    def _schedule_refresh(self) -> None:
        """Refresh usage and context size in the background."""
        if not self._is_closing and (self._refreshing is None or self._refreshing.done()):
            self._refreshing = self._tasks.create_task(self.refresh_usage(), name="measure")

    async def refresh_usage(self) -> None:
        """Refresh usage, context size and lineage."""
        conversation = self.view.conversation
        if conversation is None:
            return
        with suppress(CallFailed):
            status = await self.call(methods.STATUS, Named(conversation=conversation.id))
            self._set_view(reducer.set_usage(self.view, status.conversation, status.usage))

    def queue_message(self, text: str, *, double_text: DoubleTextName | None = None) -> None:
        """
        Queue a message for the conversation that is shown now.

        It is submitted with the same key until it is stored once or rejected. After a
        command that switches the conversation, it goes to the new one.
        """
        target = self._pin_target()
        self.outbox.add_text(text, partial(self._submit_message, target, text, double_text))

    def queue_command(self, text: str, on_reply: Callable[[CommandReply], None]) -> None:
        """Queue a chat command for the conversation that is shown now."""
        target = self._pin_target()

        async def deliver() -> None:
            on_reply(await self._run_queued_command(text, target()))

        self.outbox.add_text(text, deliver, leads_on=True)

    def _pin_target(self) -> Callable[[], ConversationShape | None]:
        """
        Return where a text typed now goes, to be called when it is delivered.

        That is the conversation shown now, whatever is shown then; after a queued command
        that may switch the conversation, it is the one that the command led to.
        """
        if self.outbox.may_switch_conversation:
            return lambda: self._led_to
        shown = self.view.conversation
        return lambda: shown or self.view.conversation

    @property
    def conversation_id(self) -> str:
        """Return the id of the conversation that is shown; its name before it is open."""
        return self._name_target(self.view.conversation)

    def _name_target(self, target: ConversationShape | None) -> str:
        return target.id if target else self.name

    async def _submit_message(
        self,
        target: Callable[[], ConversationShape | None],
        text: str,
        double_text: DoubleTextName | None,
    ) -> None:
        """
        Submit a message with the files that it names; it is stored when this returns.

        :raises CallFailed: if it was rejected
        :raises OSError: if a file cannot be read
        """
        files = await asyncio.to_thread(_load_attachments, text)
        with _refusal_as_failure():
            await self._client.submit(
                self._name_target(target()), text, double_text=double_text, attachments=files
            )

    async def run_command(self, text: str) -> CommandReply:
        """
        Run a chat command that leads to no other conversation, at once.

        :raises CallFailed: if it fails
        """
        reply = await self._call_command(text, self.view.conversation)
        self._schedule_refresh()
        return reply

    async def _run_queued_command(self, text: str, there: ConversationShape | None) -> CommandReply:
        """Run a chat command, and switch to the conversation that it leads to."""
        self._led_to = there
        reply = await self._call_command(text, there)
        if reply.conversation and (there is None or reply.conversation != there.id):
            opened = await self._open_conversation(reply.conversation)
            self._led_to = opened.conversation
            # A person who has gone elsewhere meanwhile stays there.
            if there is None or self.view.shows(there.id):
                await self._show_conversation(opened)
        self._schedule_refresh()
        return reply

    async def _call_command(self, text: str, there: ConversationShape | None) -> CommandReply:
        names = [route.rpartition(":")[2] for route in there.routes] if there else [self.name]
        name = self.name if self.name in names or there is None else there.id
        return await self.call(methods.RUN, RunParams(text=text, conversation=name))

    async def answer_approval(
        self,
        approval: str,
        *,
        approve: bool,
        keep: Literal["hour", "always"] | None = None,
        note: str | None = None,
    ) -> None:
        """
        Answer an approval; it is hidden at once and reappears if the answer fails.

        The model is told the ``note``, up to 2,000 characters of it.

        :raises CallFailed: if the answer was not delivered
        """
        self._set_view(reducer.mark_answered(self.view, approval, given=True))
        try:
            said = (note or "").strip()[:_MAX_NOTE] or None
            given = RespondParams(approval=approval, approve=approve, keep=keep, note=said)
            await self.call(methods.RESPOND, given)
        except CallFailed:
            self._set_view(reducer.mark_answered(self.view, approval, given=False))
            raise

    async def list_related(self, conversation: ConversationShape) -> list[ConversationShape]:
        """
        Return a conversation's branches and the one that it branched from.

        :raises CallFailed: if they cannot be listed
        """
        origin = conversation.origin.id if conversation.origin else None
        listed = await self.call(methods.LIST, ListParams(limit=_MAX_RELATED))
        return [
            one
            for one in listed.items
            if one.id == origin or (one.origin is not None and one.origin.id == conversation.id)
        ]

    async def interrupt_turn(self) -> None:
        """Stop the running turn; its partial text is kept."""
        if self.view.conversation is not None and self.view.link is LinkState.UP:
            await self.call(methods.INTERRUPT, Named(conversation=self.view.conversation.id))


@contextmanager
def _refusal_as_failure() -> Generator[None]:
    """Convert a refused connection to a failed call with the reason."""
    try:
        yield
    except ConnectionRefused as error:
        raise CallFailed.from_code(ErrorCode.UNAVAILABLE, str(error)) from error


def _load_attachments(text: str) -> list[Attachment]:
    """Load the existing files that a text names."""
    found = [Path(name).expanduser() for name in find_file_mentions(text)]
    return [_load_attachment(path) for path in dict.fromkeys(found) if path.is_file()]


def _load_attachment(path: Path) -> Attachment:
    try:
        size = path.stat().st_size
        content = path.read_bytes() if size <= MAX_FILE_BYTES else b""
    except OSError as error:
        raise OSError(f"{path} cannot be read: {error.strerror}") from error
    if size > MAX_FILE_BYTES:
        raise OSError(
            f"{path} has {size:,} bytes; the limit for a file is {MAX_FILE_BYTES:,} bytes"
        )
    media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    data = base64.b64encode(content).decode()
    return Attachment(name=path.name, media_type=media_type, data=data)
