"""
The desk: what a person does becomes calls, what happens becomes the view.

Holds one conversation at a time. The client comes back by itself after a loss; what is shown stays,
and goes on after the last entry that was told.
"""

from __future__ import annotations

import asyncio
import base64
import mimetypes
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from clew.core.showing import MAX_FILE_BYTES
from clew.tui.client import Client, Resumed
from clew.tui.outbox import Outbox
from clew.tui.state import reduce
from clew.tui.state.typed import files_in
from clew.tui.state.view import Link, View
from clew.tui.transports import Refused
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
    from collections.abc import Callable, Generator

    from pydantic import BaseModel

    from clew.tui.state.view import Block, Sending
    from clew.tui.transports import Connect
    from clew.wire.methods import RpcMethod
    from clew.wire.notices import AnyNotice
    from clew.wire.params import DoubleTextName, Params
    from clew.wire.records import ConversationShape
    from clew.wire.results import CommandReply, Opened

    R = TypeVar("R", bound=BaseModel)

#: Entries of the end of a conversation that are loaded at first, and before them at a time.
TAIL: Final = 60
#: Conversations among which branches are looked for, the last used first.
_MANY_CONVERSATIONS: Final = 100
#: Entries that are loaded at a time on the way to one that is far back.
_MANY: Final = 500
#: Seconds that a server has to take note that the person leaves.
_LEAVING: Final = 2.0


class Desk:
    """One person's place before one conversation at a time."""

    def __init__(
        self,
        connect: Connect,
        name: str,
        *,
        changed: Callable[[], None],
        refused: Callable[[str, str], None] = lambda _text, _reason: None,
    ) -> None:
        """
        Begin without a connection.

        ``changed`` is called after each change of ``view``, from the event loop; ``refused`` with a
        text that was sent and not taken, and why.
        """
        self._client = Client(connect, on_change=self._linked)
        self._changed = changed
        #: The name that ``/new`` and ``/resume`` move.
        self.name = name
        self.view = View()
        self.outbox = Outbox(changed=self._sending, refused=refused)
        self._following: asyncio.Task[None] | None = None
        self._measuring: asyncio.Task[None] | None = None
        #: Set while nothing runs.
        self._ended = asyncio.Event()
        self._ended.set()

    async def ended(self) -> None:
        """Wait until ``run``, which was cancelled, has come to its end."""
        await self._ended.wait()

    def _become(self, view: View) -> None:
        if view is not self.view:
            self.view = view
            self._changed()

    def _sending(self, items: tuple[Sending, ...]) -> None:
        self._become(reduce.sending(self.view, items))

    def _linked(self, is_up: bool | None) -> None:
        if is_up:
            self._become(reduce.found(self.view))
        else:
            why = "the server has gone; waiting for it to come back"
            self._become(reduce.lost(self.view, why if is_up is False else "not let in"))

    async def run(self) -> None:
        """Stay connected, until it is cancelled."""
        self._ended.clear()
        try:
            async with self._client, AsyncExitStack() as stack:
                stack.push_async_callback(self._leave)
                await self._begin()
                await self.outbox.run()
        finally:
            self._ended.set()

    async def _leave(self) -> None:
        tasks = {task for task in (self._following, self._measuring) if task is not None}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._client.close_all(seconds=_LEAVING)

    async def _begin(self) -> None:
        while True:
            try:
                named = OpenParams(conversation=self.name)
                await self._attach(await self._client.call(methods.OPEN, named))
                await self._describe()
            except CallFailed as error:
                if error.code != ErrorCode.DISCONNECTED:
                    self.trouble(str(error))
                    return
            except Refused as error:
                self._become(reduce.lost(self.view, str(error)))
                return
            else:
                return

    async def _describe(self) -> None:
        """Learn who answers; a server of an older version does not tell."""
        with suppress(CallFailed):
            self._become(reduce.described(self.view, await self.call(methods.DESCRIBE, NoParams())))

    async def _open(self, name: str) -> Opened:
        return await self.call(methods.OPEN, OpenParams(conversation=name))

    async def _attach(self, opened: Opened) -> None:
        """Show a conversation, and hear of it from the last entry on that was told."""
        view = reduce.opened(self.view, opened.conversation, opened.state)
        if not view.blocks and view.seq:
            tail = EntriesParams(conversation=opened.conversation.id, before=view.first, limit=TAIL)
            view = reduce.older(view, (await self.call(methods.ENTRIES, tail)).items)
        self._become(view)
        if self._following is not None:
            self._following.cancel()
        self._following = asyncio.create_task(self._follow(opened.conversation.id), name="follow")

    async def _follow(self, conversation: str) -> None:
        try:
            async with self._client.follow(conversation, after=self.view.seq) as events:
                self._measure()
                async for told in events:
                    self._hear(told)
        except CallFailed as error:
            self.trouble(str(error))

    def _hear(self, told: AnyNotice | Resumed) -> None:
        if isinstance(told, Resumed):
            self._become(reduce.caught_up(self.view))
            return
        head = self.view.head
        self._become(reduce.told(self.view, told))
        if self.view.head != head or told.type in ("turn_closed", "turn_begun"):
            self._measure()

    async def call(self, method: RpcMethod[Any, R], params: Params) -> R:
        """
        Ask the server; waits for it where it is away.

        :raises CallFailed: if it has come to nothing
        """
        with _told():
            return await self._client.call(method, params)

    def trouble(self, text: str) -> None:
        """Say that something could not be done; "" once it is of no interest any more."""
        self._become(reduce.troubled(self.view, text))

    async def go_to(self, opened: Opened) -> None:
        """Show another conversation, which this client has opened."""
        await self._attach(opened)

    async def go_to_named(self, name: str) -> None:
        """Show another conversation: by its name, its id, or one of its sessions' ids."""
        await self._attach(await self._open(name))

    async def older(self, count: int = TAIL) -> None:
        """Load entries that stand before the first one that is loaded."""
        conversation = self.view.conversation
        if conversation is None or self.view.first <= 1:
            return
        wanted = EntriesParams(conversation=conversation.id, before=self.view.first, limit=count)
        self._become(reduce.older(self.view, (await self.call(methods.ENTRIES, wanted)).items))

    async def reach(self, session: str) -> Block | None:
        """
        Load what is needed to see where a session begins: its first block.

        ``None`` if nothing was said in it.
        """
        while self.view.first > 1 and not self._is_before(session):
            await self.older(_MANY)
        return next((block for block in self.view.blocks if block.session == session), None)

    def _is_before(self, session: str) -> bool:
        """Whether what is loaded begins before a session."""
        conversation, blocks = self.view.conversation, self.view.blocks
        known = [one.id for one in conversation.sessions] if conversation else []
        begins = blocks[0].session if blocks else ""
        if begins not in known or session not in known:
            return session not in known
        return known.index(begins) < known.index(session)

    def _measure(self) -> None:
        """See anew, beside everything else, what was used and how full the context is."""
        if self._measuring is None or self._measuring.done():
            self._measuring = asyncio.create_task(self.measured(), name="measure")

    async def measured(self) -> None:
        """See anew what was used, how full the context is, and the lineage."""
        conversation = self.view.conversation
        if conversation is None:
            return
        with suppress(CallFailed):
            status = await self.call(methods.STATUS, Named(conversation=conversation.id))
            self._become(reduce.measured(self.view, status.conversation, status.usage))

    def say(self, text: str, *, double_text: DoubleTextName | None = None) -> None:
        """
        Take a message over, for the conversation that is shown now.

        It is kept and handed in with the same key until it is stored, once, or refused. Behind a
        command that leads elsewhere it belongs to where that leads.
        """
        name = None if self.outbox.leads_on else self._here
        self.outbox.add(text, partial(self._submit, name, text, double_text))

    @property
    def _here(self) -> str:
        there = self.view.conversation
        return there.id if there else self.name

    async def _submit(
        self, name: str | None, text: str, double_text: DoubleTextName | None
    ) -> None:
        """
        Hand a message in, with the files that it names; when this returns it is stored.

        :raises CallFailed: if it was refused
        :raises OSError: if a file cannot be read
        """
        files = await asyncio.to_thread(_attachments, text)
        with _told():
            await self._client.submit(
                name or self._here, text, double_text=double_text, attachments=files
            )

    async def command(self, text: str) -> CommandReply:
        """
        Carry out a chat command, and go where it leads.

        :raises CallFailed: if it could not be
        """
        there = self.view.conversation
        names = [route.rpartition(":")[2] for route in there.routes] if there else [self.name]
        name = self.name if self.name in names or there is None else there.id
        reply = await self.call(methods.RUN, RunParams(text=text, conversation=name))
        if reply.conversation and (there is None or reply.conversation != there.id):
            await self.go_to_named(reply.conversation)
        self._measure()
        return reply

    async def answer(self, approval: str, *, approve: bool) -> None:
        """
        Answer a question; it is not asked again, unless the answer does not get there.

        :raises CallFailed: if it did not
        """
        self._become(reduce.answered(self.view, approval, given=True))
        try:
            await self.call(methods.RESPOND, RespondParams(approval=approval, approve=approve))
        except CallFailed:
            self._become(reduce.answered(self.view, approval, given=False))
            raise

    async def related(self, conversation: ConversationShape) -> list[ConversationShape]:
        """
        Return the conversations that branched from one, and the one that it branched from.

        :raises CallFailed: if they cannot be listed
        """
        origin = conversation.origin.id if conversation.origin else None
        listed = await self.call(methods.LIST, ListParams(limit=_MANY_CONVERSATIONS))
        return [
            one
            for one in listed.items
            if one.id == origin or (one.origin is not None and one.origin.id == conversation.id)
        ]

    async def interrupt(self) -> None:
        """Stop the running turn; what it has said is kept."""
        if self.view.conversation is not None and self.view.link is Link.UP:
            await self.call(methods.INTERRUPT, Named(conversation=self.view.conversation.id))


@contextmanager
def _told() -> Generator[None]:
    """Who is not let in has a call that fails, with the reason."""
    try:
        yield
    except Refused as error:
        raise CallFailed.from_code(ErrorCode.UNAVAILABLE, str(error)) from error


def _attachments(text: str) -> list[Attachment]:
    """The files that a text names, where there are such files."""
    found = [Path(name).expanduser() for name in files_in(text)]
    return [_attachment(path) for path in dict.fromkeys(found) if path.is_file()]


def _attachment(path: Path) -> Attachment:
    try:
        size = path.stat().st_size
        content = path.read_bytes() if size <= MAX_FILE_BYTES else b""
    except OSError as error:
        raise OSError(f"{path} cannot be read: {error.strerror}") from error
    if size > MAX_FILE_BYTES:
        raise OSError(
            f"{path} has {size:,} bytes: a file that is sent along may have {MAX_FILE_BYTES:,}"
        )
    media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    data = base64.b64encode(content).decode()
    return Attachment(name=path.name, media_type=media_type, data=data)
