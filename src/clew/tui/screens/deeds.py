"""What a person does beside talking: other screens, commands, going back, answering questions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from clew.tui.screens.approval import ApprovalScreen
from clew.tui.screens.compaction import CompactionScreen
from clew.tui.screens.decision import Confirmation
from clew.tui.screens.keys import Keys
from clew.tui.screens.lineage import lineage
from clew.tui.screens.picker import Choice, Narrowing
from clew.tui.screens.queue import QueueList
from clew.tui.screens.sessions import Sessions
from clew.tui.screens.writing import Writing
from clew.tui.state.typed import without_file_lines
from clew.tui.state.words import one_line
from clew.wire import methods
from clew.wire.errors import CallFailed
from clew.wire.params import (
    BranchParams,
    CancelParams,
    EditParams,
    ModelListParams,
    ModelSetParams,
    Named,
    NewParams,
    RewindParams,
    UndeleteParams,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from textual.app import App
    from textual.screen import Screen

    from clew.tui.desk import Desk
    from clew.tui.screens.chat import Chat
    from clew.tui.screens.picker import Picked
    from clew.tui.state.view import Block
    from clew.tui.widgets.transcript import Deed
    from clew.wire.records import ApprovalShape

#: Commands that wait for nothing that was sent before them.
_AT_ONCE: Final = frozenset({"approve", "deny", "queue", "status", "stop", "usage"})


class Deeds:
    """Carries out, one thing at a time; what cannot be done is said."""

    def __init__(self, chat: Chat, desk: Desk, clock: Callable[[], float]) -> None:
        self._chat, self._desk, self._clock = chat, desk, clock
        #: What is being carried out: its key does nothing more until that is done.
        self._under_way: set[str] = set()
        #: The conversation that was deleted here last.
        self._deleted: Picked | None = None
        #: A key for a screen was pressed, and the screen is not there yet.
        self._opening = False

    @property
    def is_opening(self) -> bool:
        """Whether a key for another screen was pressed that is not there yet."""
        return self._opening

    def leave(self) -> None:
        """End the program; a running turn goes on where a server runs."""
        self._app.exit()

    def start(self, name: str, deed: Callable[[], Awaitable[None]]) -> None:
        """Do something beside everything else; nothing if it is being done already."""
        if name not in self._under_way:
            self._under_way.add(name)
            self._chat.run_worker(self._told(name, deed), group="deed")

    def show(self, screen: Callable[[], Awaitable[None]]) -> None:
        """Open a screen, of which there is one at a time, and do what was chosen there."""
        if not self._opening and self._app.screen is self._chat:
            self._opening = True
            self._chat.run_worker(self._opened(screen), group="deed")

    async def _opened(self, screen: Callable[[], Awaitable[None]]) -> None:
        try:
            await self._told("", screen)
        finally:
            self._opening = False

    async def _told(self, name: str, deed: Callable[[], Awaitable[None]]) -> None:
        try:
            await deed()
        except CallFailed as error:
            self._chat.reply(str(error))
        finally:
            self._under_way.discard(name)

    def _is_wanted_still(self, typed: int) -> bool:
        """Whether a list may open: it must not take the keys of who has typed on meanwhile."""
        if typed == self._chat.keys_typed:
            return True
        self._chat.reply("The server has answered; press the key again to see the list.")
        return False

    async def _confirmed(self, question: str, does: str) -> bool:
        return bool(await self._show(Confirmation(self._clock, question=question, does=does)))

    async def _show(self, screen: Screen[Any]) -> Any:
        """Open a screen; ``None`` if another one is open."""
        self._opening = False
        if self._app.screen is not self._chat:
            return None
        return await self._app.push_screen_wait(screen)

    @property
    def _app(self) -> App[None]:
        return cast("App[None]", self._chat.app)

    @property
    def _id(self) -> str:
        conversation = self._desk.view.conversation
        return conversation.id if conversation else self._desk.name

    def command(self, text: str) -> bool:
        """Take over what begins with a slash; ``False`` for what is a message."""
        if not text.startswith("/") or text[1:2] in ("/", " ", ""):
            return False
        name, _, argument = text[1:].strip().partition(" ")
        if name in ("quit", "exit"):
            self.leave()
            return True
        screens = {
            "sessions": self.sessions,
            "lineage": self.lineage,
            "model": self.models,
            "queue": self.queue,
            "compress": self.compaction,
            "compact": self.compaction,
            "help": self.keys,
        }
        if name == "approve":
            # Nothing is allowed that was not shown.
            self.show(self.approvals)
        elif name in screens and not argument:
            self.show(screens[name])
        elif name in _AT_ONCE:
            self.start(text, partial(self._run, text))
        else:
            self._desk.outbox.add(text, partial(self._run, text), leads_on=True)
        return True

    async def _run(self, text: str) -> None:
        reply = await self._desk.command(text)
        self._chat.reply(reply.text)

    def pointed(self, deed: Deed, block: Block) -> None:
        """Do something with a message that was pointed at, one thing at a time."""
        self.start("pointed", partial(self._point, deed, block))

    async def _point(self, deed: Deed, block: Block) -> None:
        # Not before it is done: a key that is held down would be typed.
        try:
            await self._pointed(deed, block)
        finally:
            self._chat.focus_prompt()

    async def _pointed(self, deed: Deed, block: Block) -> None:
        if deed == "copy":
            text = block.text or (block.tool.result if block.tool else "")
            self._app.copy_to_clipboard(text)
            self._chat.reply("copied")
        elif deed == "rewind":
            if not await self._confirmed(
                "Go back to this message? What came after it leaves the conversation.", "go back"
            ):
                return
            to = block.seq - 1 if block.kind.value == "user" else block.seq
            await self._desk.call(methods.REWIND, RewindParams(conversation=self._id, to=to))
            self._chat.reply("went back; what came after it stays in the log, out of the context")
            if block.kind.value == "user":
                self._chat.write(without_file_lines(block.text))
        else:
            params = BranchParams(conversation=self._id, at=block.seq)
            made = await self._desk.call(methods.BRANCH, params)
            await self._desk.go_to_named(made.id)
            self._chat.reply("this is the branch; F2 leads back to the original")

    def ask(self, calls: Sequence[ApprovalShape]) -> None:
        """Other calls wait for approval: show them where they are being looked at."""
        if isinstance(screen := self._app.screen, ApprovalScreen):
            screen.show(calls)

    async def approvals(self) -> None:
        """The tool calls that wait for approval: to be allowed or denied."""
        if not (waiting := self._desk.view.approvals):
            self._chat.reply("No tool call is waiting for approval.")
            return
        answer = await self._show(ApprovalScreen(self._clock, waiting))
        for approval in answer.approvals if answer else ():
            await self._desk.answer(approval, approve=answer.approve)

    # Screens

    async def keys(self) -> None:
        await self._show(Keys())

    async def sessions(self) -> None:
        picked = await self._show(Sessions(self._desk))
        if picked is None:
            return
        if picked.deed == "new":
            opened = await self._desk.call(methods.NEW, NewParams(name=self._desk.name))
            await self._desk.go_to(opened)
        elif picked.deed == "delete":
            await self._delete(picked)
        elif picked.deed == "undelete":
            await self._undelete()
        elif picked.key:
            await self._desk.go_to_named(picked.key)

    async def _delete(self, picked: Picked) -> None:
        question = f"Delete this conversation? {picked.text}"
        if not await self._confirmed(question, "delete it"):
            return
        gone = await self._desk.call(methods.DELETE, Named(conversation=picked.key))
        self._deleted = picked
        until = "" if gone.undo_until is None else "; F2, then ^R, brings it back for a while"
        self._chat.reply(f"deleted: {picked.text}{until}")

    async def _undelete(self) -> None:
        if (gone := self._deleted) is None:
            self._chat.reply("Nothing was deleted here.")
            return
        self._deleted = None
        back = await self._desk.call(methods.UNDELETE, UndeleteParams(conversation=gone.key))
        await self._desk.go_to_named(back.id)
        self._chat.reply(f"brought back: {gone.text}")

    async def lineage(self) -> None:
        typed = self._chat.keys_typed
        await self._desk.measured()
        if not self._is_wanted_still(typed):
            return
        conversation = self._desk.view.conversation
        if conversation is None:
            return
        screen = lineage(conversation, await self._desk.related(conversation))
        if (picked := await self._show(screen)) is None:
            return
        if picked.key not in [one.id for one in conversation.sessions]:
            await self._desk.go_to_named(picked.key)
            return
        number = [one.id for one in conversation.sessions].index(picked.key) + 1
        if (begins := await self._desk.reach(picked.key)) is None:
            self._chat.reply(f"nothing was said in session {number}")
            return
        self._chat.point_to(begins)
        newest = "" if picked.key == self._desk.view.head else "; what is said goes into the newest"
        self._chat.reply(f"session {number} begins here{newest}")

    async def compaction(self) -> None:
        told = await self._show(CompactionScreen(self._desk))
        if told:
            self._chat.reply(told)

    async def models(self) -> None:
        typed = self._chat.keys_typed
        found = await self._desk.call(methods.MODELS, ModelListParams(conversation=self._id))
        if not self._is_wanted_still(typed):
            return
        names = dict.fromkeys([*found.items, found.current])
        choices = [Choice(key=one, text=one, marked=one == found.current) for one in names]
        picked = await self._show(Narrowing(choices, heading="Model of this conversation"))
        if picked is not None:
            given = ModelSetParams(conversation=self._id, model=picked.key)
            await self._desk.call(methods.SET_MODEL, given)
            self._chat.reply(f"{picked.key} answers from the next message on")

    async def queue(self) -> None:
        """What waits: to be changed, or taken back."""
        state = self._desk.view.state
        picked = await self._show(QueueList(state.queue if state else []))
        if picked is None or state is None:
            return
        item = next(one for one in state.queue if one.inbox_id == picked.key)
        if picked.deed == "delete":
            done = await self._desk.call(methods.CANCEL, CancelParams(inbox_id=picked.key))
            if not done.cancelled:
                self._chat.reply("it was taken up already")
            return
        text = await self._show(Writing(f"Change: {one_line(item.text, 60)}", item.text))
        if text and text.strip():
            given = EditParams(inbox_id=picked.key, text=text)
            done = await self._desk.call(methods.EDIT, given)
            if not done.edited:
                self._chat.reply("it was taken up already, as it was")
