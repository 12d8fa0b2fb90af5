"""What a person does beside talking: other screens, commands, going back, answering questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from clew.tui.screens.compaction import CompactionScreen
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
    RespondParams,
    RewindParams,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from textual.app import App
    from textual.screen import Screen

    from clew.tui.desk import Desk
    from clew.tui.screens.chat import Chat
    from clew.tui.state.view import Block
    from clew.tui.widgets.transcript import Deed


class Deeds:
    """Carries out, one thing at a time; what cannot be done is said."""

    def __init__(self, chat: Chat, desk: Desk) -> None:
        self._chat, self._desk = chat, desk

    def start(self, deed: Coroutine[Any, Any, None]) -> None:
        """Do something beside everything else."""
        self._chat.run_worker(self._told(deed), group="deed")

    async def _told(self, deed: Coroutine[Any, Any, None]) -> None:
        try:
            await deed
        except CallFailed as error:
            self._chat.reply(str(error))

    async def _show(self, screen: Screen[Any]) -> Any:
        return await self._app.push_screen_wait(screen)

    @property
    def _app(self) -> App[None]:
        return cast("App[None]", self._chat.app)

    @property
    def _id(self) -> str:
        conversation = self._desk.view.conversation
        return conversation.id if conversation else self._desk.name

    async def command(self, text: str) -> bool:
        """Carry out what begins with a slash; ``False`` for what is a message."""
        if not text.startswith("/") or text[1:2] in ("/", " ", ""):
            return False
        name, _, argument = text[1:].strip().partition(" ")
        if name in ("quit", "exit"):
            self._app.exit()
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
        if name in screens and not argument:
            self.start(screens[name]())
            return True
        reply = await self._desk.command(text)
        self._chat.reply(reply.text)
        return True

    async def pointed(self, deed: Deed, block: Block) -> None:
        """Do something with a message that was pointed at."""
        if deed == "copy":
            text = block.text or (block.tool.result if block.tool else "")
            self._app.copy_to_clipboard(text)
            self._chat.reply("copied")
        elif deed == "rewind":
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

    async def answer(self, word: Literal["yes", "no", "all"]) -> None:
        """A person's word on the tool calls that wait."""
        waiting = self._desk.view.approvals
        for approval in waiting if word == "all" else waiting[:1]:
            given = RespondParams(approval=approval.id, approve=word != "no")
            await self._desk.call(methods.RESPOND, given)

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
            await self._desk.call(methods.DELETE, Named(conversation=picked.key))
            self._chat.reply("deleted")
        elif picked.key:
            await self._desk.go_to_named(picked.key)

    async def lineage(self) -> None:
        await self._desk.measured()
        conversation = self._desk.view.conversation
        if conversation is None or (picked := await self._show(lineage(conversation))) is None:
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
        found = await self._desk.call(methods.MODELS, ModelListParams(conversation=self._id))
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
