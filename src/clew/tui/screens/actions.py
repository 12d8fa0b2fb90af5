"""Actions beside sending messages: screens, commands, rewinds, approvals."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar, cast

from textual.screen import Screen

from clew.tui.screens.approval import ApprovalScreen
from clew.tui.screens.compaction import CompactionScreen
from clew.tui.screens.conversations import ConversationPicker
from clew.tui.screens.decision import ConfirmationScreen
from clew.tui.screens.edit_dialog import EditDialog
from clew.tui.screens.help import HelpScreen
from clew.tui.screens.lineage import build_lineage
from clew.tui.screens.picker import FilterPicker, PickerItem
from clew.tui.screens.queue import QueuePicker
from clew.tui.state.input_history import strip_file_lines
from clew.tui.state.labels import flatten_text
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

    from clew.tui.controller import ConversationController
    from clew.tui.screens.picker import PickerResult
    from clew.tui.state.view import Block
    from clew.tui.widgets.transcript import TranscriptAction
    from clew.wire.models import ApprovalShape

T = TypeVar("T")

#: Commands that do not wait for texts sent before them.
_IMMEDIATE_COMMANDS: Final = frozenset(
    {"approve", "deny", "grants", "queue", "revoke", "status", "stop", "usage", "why"}
)


class ChatView(Screen[None]):
    """Conversation screen, as its actions see it."""

    #: Keys that were typed here, and not in a dialog.
    keys_typed = 0

    def show_reply(self, text: str) -> None:
        """Show a command's reply until the next action."""

    def focus_prompt(self) -> None:
        """Focus the prompt."""

    def prefill_prompt(self, text: str) -> None:
        """Put a text into the prompt, unless the user has written something."""

    def point_to_block(self, block: Block) -> None:
        """Scroll to a block of the view and select it."""


class ChatActions:
    """Runner of user actions, one of each kind at a time; shows their errors."""

    def __init__(
        self, chat: ChatView, desk: ConversationController, clock: Callable[[], float]
    ) -> None:
        self._chat, self._controller, self._clock = chat, desk, clock
        #: Running actions: their keys are ignored until they finish.
        self._running: set[str] = set()
        #: The conversation last deleted here.
        self._last_deleted: PickerResult | None = None
        #: A screen was requested and is not open yet.
        self._opening = False

    @property
    def is_opening(self) -> bool:
        """Return whether a screen was requested and is not open yet."""
        return self._opening

    def quit_app(self) -> None:
        """Quit; a running turn continues on the server."""
        self._app.exit()

    def start_action(self, name: str, deed: Callable[[], Awaitable[None]]) -> None:
        """Start an action in the background, unless it is already running."""
        if name not in self._running:
            self._running.add(name)
            self._chat.run_worker(self._run_action(name, deed), group="deed")

    def open_screen(self, screen: Callable[[], Awaitable[None]]) -> None:
        """Open a screen, one at a time, and carry out what was chosen there."""
        if not self._opening and self._app.screen is self._chat:
            self._opening = True
            self._chat.run_worker(self._run_screen(screen), group="deed")

    async def _run_screen(self, screen: Callable[[], Awaitable[None]]) -> None:
        try:
            await self._run_action("", screen)
        finally:
            self._opening = False

    async def _run_action(self, name: str, deed: Callable[[], Awaitable[None]]) -> None:
        try:
            await deed()
        except CallFailed as error:
            self._chat.show_reply(str(error))
        finally:
            self._running.discard(name)

    def _may_open_list(self, typed: int) -> bool:
        """Return whether a list may open: not if the user has typed meanwhile."""
        if typed == self._chat.keys_typed:
            return True
        self._chat.show_reply("The server has answered; press the key again to see the list.")
        return False

    async def _confirm(self, question: str, does: str) -> bool:
        return bool(
            await self._push_screen(ConfirmationScreen(self._clock, question=question, does=does))
        )

    async def _push_screen(self, screen: Screen[T]) -> T | None:
        """Open a screen and return its result; ``None`` if another one is open."""
        self._opening = False
        if self._app.screen is not self._chat:
            return None
        return await self._app.push_screen_wait(screen)

    @property
    def _app(self) -> App[None]:
        return cast("App[None]", self._chat.app)

    def handle_command(self, text: str) -> bool:
        """Handle a slash command; return ``False`` if the text is a message."""
        if not text.startswith("/") or text[1:2] in ("/", " ", ""):
            return False
        name, _, argument = text[1:].strip().partition(" ")
        if name in ("quit", "exit"):
            self.quit_app()
            return True
        screens = {
            "sessions": self.show_conversations,
            "lineage": self.show_lineage,
            "model": self.choose_model,
            "queue": self.edit_queue,
            "compress": self.show_compaction,
            "compact": self.show_compaction,
            "help": self.show_help,
        }
        if name in ("approve", "deny"):
            # Nothing may be answered unseen.
            self.open_screen(self.show_approvals)
        elif name in screens and not argument:
            self.open_screen(screens[name])
        elif name in _IMMEDIATE_COMMANDS:
            self.start_action(text, partial(self._run_command, text))
        else:
            self._controller.queue_command(text, lambda reply: self._chat.show_reply(reply.text))
        return True

    async def _run_command(self, text: str) -> None:
        reply = await self._controller.run_command(text)
        self._chat.show_reply(reply.text)

    def start_block_action(self, deed: TranscriptAction, block: Block) -> None:
        """Start an action on the selected message, one at a time."""
        # The message's own conversation: another one may be shown when the action comes to it.
        conversation = self._controller.conversation_id
        self.start_action("pointed", partial(self._run_block_action, deed, block, conversation))

    async def _run_block_action(
        self, deed: TranscriptAction, block: Block, conversation: str
    ) -> None:
        # Not before it is done: a held key would be typed into the prompt.
        try:
            await self._apply_block_action(deed, block, conversation)
        finally:
            self._chat.focus_prompt()

    async def _apply_block_action(
        self, deed: TranscriptAction, block: Block, conversation: str
    ) -> None:
        if block.seq < 1 and deed != "copy":
            self._chat.show_reply("This message is in the original; F2 leads there.")
        elif deed == "copy":
            text = block.text or (block.tool.result if block.tool else "")
            self._app.copy_to_clipboard(text)
            self._chat.show_reply("copied")
        elif deed == "rewind":
            if not await self._confirm(
                "Rewind to this message? Everything after it leaves the context.", "go back"
            ):
                return
            to = block.seq - 1 if block.kind.value == "user" else block.seq
            await self._controller.call(
                methods.REWIND, RewindParams(conversation=conversation, to=to)
            )
            self._chat.show_reply(
                "rewound; what came after it stays in the log, out of the context"
            )
            if block.kind.value == "user":
                self._chat.prefill_prompt(strip_file_lines(block.text))
        else:
            params = BranchParams(conversation=conversation, at=block.seq)
            made = await self._controller.call(methods.BRANCH, params)
            await self._controller.switch_to_named(made.id)
            self._chat.show_reply("This is the branch; F2 leads back to the original.")

    def update_approvals(self, calls: Sequence[ApprovalShape]) -> None:
        """Update an open approval screen with the waiting calls."""
        if isinstance(screen := self._app.screen, ApprovalScreen):
            screen.show_calls(calls)

    async def show_approvals(self) -> None:
        """Let the user allow or deny the waiting tool calls."""
        if not (waiting := self._controller.view.approvals):
            self._chat.show_reply("No tool call is waiting for approval.")
            return
        answer = await self._push_screen(ApprovalScreen(self._clock, waiting))
        if answer is None:
            return
        note: str | None = None
        if answer.because:
            note = await self._push_screen(EditDialog("Why not? The agent is told.", ""))
            if note is None:
                return  # the call still waits
        for approval in answer.approvals:
            await self._controller.answer_approval(
                approval, approve=answer.approve, keep=answer.keep, note=note
            )

    # Screens

    async def show_help(self) -> None:
        await self._push_screen(HelpScreen())

    async def show_conversations(self) -> None:
        picked = await self._push_screen(ConversationPicker(self._controller))
        if picked is None:
            return
        if picked.action == "new":
            opened = await self._controller.call(methods.NEW, NewParams(name=self._controller.name))
            await self._controller.switch_to(opened)
        elif picked.action == "delete":
            await self._delete_conversation(picked)
        elif picked.action == "undelete":
            await self._undelete_conversation()
        elif picked.key:
            await self._controller.switch_to_named(picked.key)

    async def _delete_conversation(self, picked: PickerResult) -> None:
        question = f"Delete this conversation? {picked.text}"
        if not await self._confirm(question, "delete it"):
            return
        gone = await self._controller.call(methods.DELETE, Named(conversation=picked.key))
        self._last_deleted = picked
        undo = "" if gone.undo_until is None else _describe_undo(gone.undo_until)
        self._chat.show_reply(f"deleted: {picked.text}{undo}")

    async def _undelete_conversation(self) -> None:
        if (gone := self._last_deleted) is None:
            self._chat.show_reply("Nothing was deleted here.")
            return
        self._last_deleted = None
        back = await self._controller.call(methods.UNDELETE, UndeleteParams(conversation=gone.key))
        await self._controller.switch_to_named(back.id)
        self._chat.show_reply(f"brought back: {gone.text}")

    async def show_lineage(self) -> None:
        typed = self._chat.keys_typed
        await self._controller.refresh_usage()
        if not self._may_open_list(typed):
            return
        conversation = self._controller.view.conversation
        if conversation is None:
            return
        screen = build_lineage(conversation, await self._controller.list_related(conversation))
        if (picked := await self._push_screen(screen)) is None:
            return
        if picked.key not in [one.id for one in conversation.sessions]:
            await self._controller.switch_to_named(picked.key)
            return
        number = [one.id for one in conversation.sessions].index(picked.key) + 1
        if (begins := await self._controller.load_session_start(picked.key)) is None:
            self._chat.show_reply(f"session {number} has no messages")
            return
        self._chat.point_to_block(begins)
        newest = (
            "" if picked.key == self._controller.view.head else "; new messages go into the newest"
        )
        self._chat.show_reply(f"session {number} begins here{newest}")

    async def show_compaction(self) -> None:
        told = await self._push_screen(CompactionScreen(self._controller))
        if told:
            self._chat.show_reply(told)

    async def choose_model(self) -> None:
        typed, conversation = self._chat.keys_typed, self._controller.conversation_id
        found = await self._controller.call(
            methods.MODELS, ModelListParams(conversation=conversation)
        )
        if not self._may_open_list(typed):
            return
        names = dict.fromkeys([*found.items, found.current])
        choices = [PickerItem(key=one, text=one, marked=one == found.current) for one in names]
        picked = await self._push_screen(
            FilterPicker(choices, heading="Model of this conversation")
        )
        if picked is not None:
            given = ModelSetParams(conversation=conversation, model=picked.key)
            await self._controller.call(methods.SET_MODEL, given)
            self._chat.show_reply(f"{picked.key} answers from the next message on")

    async def edit_queue(self) -> None:
        """Let the user change or cancel waiting inputs."""
        state = self._controller.view.state
        picked = await self._push_screen(QueuePicker(state.queue if state else []))
        if picked is None or state is None:
            return
        item = next(one for one in state.queue if one.inbox_id == picked.key)
        if picked.action == "delete":
            done = await self._controller.call(methods.CANCEL, CancelParams(inbox_id=picked.key))
            if not done.cancelled:
                self._chat.show_reply("it is in progress already")
            return
        text = await self._push_screen(
            EditDialog(f"Change: {flatten_text(item.text, 60)}", item.text)
        )
        if text and text.strip():
            given = EditParams(inbox_id=picked.key, text=text)
            done = await self._controller.call(methods.EDIT, given)
            if not done.edited:
                self._chat.show_reply("it is in progress already, as it was")


def _describe_undo(until: str) -> str:
    """Return how a deletion is undone, and for how long."""
    left = datetime.fromisoformat(until) - datetime.now(UTC)
    minutes = max(1, round(left.total_seconds() / 60))
    return f"; F2, then ^R, brings it back for {minutes} minute{'s' * (minutes != 1)}"
