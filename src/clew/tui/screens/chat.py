"""Conversation screen."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Static

from clew.tui.screens.actions import ChatActions, ChatView
from clew.tui.screens.help import build_overview
from clew.tui.state.view import LinkState
from clew.tui.widgets.activity import ActivityBar
from clew.tui.widgets.bars import ApprovalBar, CommandBar, QueueBar, StatusBar, TitleBar
from clew.tui.widgets.completion_menu import CompletionMenu
from clew.tui.widgets.prompt import Prompt
from clew.tui.widgets.transcript import Transcript
from clew.tui.widgets.welcome import Welcome
from clew.wire import methods
from clew.wire.errors import CallFailed
from clew.wire.params import CompleteParams

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.timer import Timer

    from clew.tui.controller import ConversationController
    from clew.tui.state.input_history import InputHistory
    from clew.tui.state.view import Block, ViewState

#: Shortest time between two redraws: about 15 per second.
MIN_FRAME_INTERVAL = 1 / 15
#: Limits the share of time spent drawing: a slow redraw is repeated less often.
_REDRAW_FACTOR = 4
#: Seconds within which a second Ctrl-C quits.
QUIT_WINDOW = 2.0
_QUIT_HINT = "Press Ctrl-C again to leave."
#: Alone in the prompt, it shows the keys.
HELP = "?"
#: Height below which the prompt has no frame.
LOW_HEIGHT = 16
#: Columns of the key hints in the status bar.
_KEY_HINT_WIDTH = 32


class ChatScreen(ChatView):
    """Screen that shows the controller's view and forwards user actions to it."""

    AUTO_FOCUS = "#prompt"
    DEFAULT_CSS = """
    ChatScreen { layout: vertical; }
    ChatScreen #reply { height: auto; max-height: 12; padding: 0 1; display: none;
        background: $panel; }
    ChatScreen #help { height: auto; max-height: 14; padding: 0 1; display: none;
        background: $panel; }
    ChatScreen #reply.open, ChatScreen #help.open { display: block; }
    ChatScreen #low { height: auto; }
    ChatScreen.low Prompt, ChatScreen.low Prompt:focus { border: none; max-height: 4;
        background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Stop", show=False),
        Binding("ctrl+c", "cut_short", "Stop", show=False),
        Binding("f1", "keys", "Keys", priority=True),
        Binding("f2,ctrl+o", "sessions", "Conversations", priority=True),
        Binding("f3,ctrl+t", "lineage", "Lineage", priority=True),
        Binding("f4,ctrl+r", "compaction", "Summary", priority=True),
        Binding("f5,ctrl+l", "models", "Model", priority=True),
        Binding("f6,ctrl+n", "queue", "Waiting messages", priority=True),
        Binding("f7,ctrl+g", "question", "Question", priority=True),
        Binding("pageup", "page(-1)", "Up", priority=True),
        Binding("pagedown", "page(1)", "Down", priority=True),
        Binding("ctrl+end", "page(1000)", "End", priority=True, show=False),
    ]

    def __init__(
        self,
        desk: ConversationController,
        typed: InputHistory,
        keep: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        super().__init__()
        self._controller, self._input_history, self._save_input = desk, typed, keep
        self._actions = ChatActions(self, desk, clock)
        self._shown: ViewState | None = None
        #: Runs while a second Ctrl-C quits.
        self._quit_timer: Timer | None = None
        self._is_draw_scheduled = False
        self._frame_interval = MIN_FRAME_INTERVAL
        #: Input that arrived before the screen was mounted; ``None`` afterwards.
        self._early_events: list[events.Event] | None = []

    def compose(self) -> ComposeResult:
        yield TitleBar()
        yield Welcome()
        yield Transcript()
        with Vertical(id="low"):
            yield ActivityBar()
            yield Static(id="reply")
            yield Static(id="help")
            yield ApprovalBar()
            yield CommandBar()
            yield QueueBar()
            proposals = CompletionMenu()
            yield proposals
            yield Prompt(self._input_history, proposals, lambda: self._actions.is_opening)
            yield StatusBar()

    def on_mount(self) -> None:
        early, self._early_events = self._early_events or [], None
        for event in early:
            self._forward_to_prompt(event)
        self.query_one(Prompt).focus()
        self._draw_now()

    def _forward_event(self, event: events.Event) -> None:
        """
        Forward input to the prompt while no widget has the focus.

        Keys arrive as soon as the terminal is read, even before the first paint. They must
        not wait in this screen's own queue: by then the prompt may have the focus.
        """
        self.keys_typed += isinstance(event, (events.Key, events.Paste))
        if not isinstance(event, (events.Key, events.Paste)) or self.focused is not None:
            super()._forward_event(event)
        elif self._early_events is not None:
            self._early_events.append(event)
        else:
            self._forward_to_prompt(event)

    def _forward_to_prompt(self, event: events.Event) -> None:
        prompt = self.query_one(Prompt).focus()
        prompt._forward_event(event)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.height < LOW_HEIGHT, "low")
        self.query_one(Prompt).fit_width(event.size.width)
        self.query_one(Welcome).show_view(self._controller.view, lines=event.size.height)
        self.query_one(StatusBar).show_view(self._controller.view)

    def schedule_draw(self) -> None:
        """Schedule a redraw that also covers other changes of the same moment."""
        if not self._is_draw_scheduled and self.is_attached:
            self._is_draw_scheduled = True
            self.set_timer(self._frame_interval, self._draw_now)

    def _draw_now(self) -> None:
        self._is_draw_scheduled = False
        begun = time.perf_counter()
        self._update_widgets()
        self._frame_interval = max(
            MIN_FRAME_INTERVAL, _REDRAW_FACTOR * (time.perf_counter() - begun)
        )

    def _update_widgets(self) -> None:
        view, before = self._controller.view, self._shown
        # A timer may fire while the program ends, when the widgets have been removed already.
        if view is before or not self.is_attached or not self.query(Transcript):
            return
        self._shown = view
        self.query_one(Transcript).show_view(view)
        self.query_one(Welcome).show_view(view, lines=self.size.height)
        self.query_one(ActivityBar).show_view(view)
        if (
            view.link is LinkState.LOST
            and view.trouble
            and (before is None or before.trouble != view.trouble)
        ):
            self._show_long_error(view.trouble)
        if before is not None and _bar_state(before) == _bar_state(view):
            return
        self.query_one(TitleBar).show_view(view)
        self.query_one(StatusBar).show_view(view)
        self.query_one(CommandBar).show_view(view)
        self.query_one(QueueBar).show_view(view)
        self.query_one(ApprovalBar).show_view(view)
        self._actions.update_approvals(view.approvals)

    def _show_long_error(self, trouble: str) -> None:
        """Show an error in full if the status bar is too narrow for it."""
        if len(trouble) > self.size.width - _KEY_HINT_WIDTH:
            self.show_reply(trouble)

    def redraw_transcript(self) -> None:
        """Redraw after a change of colours."""
        self.query_one(Transcript).redraw()

    def show_reply(self, text: str) -> None:
        """Show a command's reply until the next action."""
        shown = self.query_one("#reply", Static)
        shown.set_class(bool(text), "open")
        shown.update(text)

    def prefill_prompt(self, text: str) -> None:
        """Put a text into the prompt, unless the user has written something."""
        prompt = self.query_one(Prompt)
        if not prompt.text.strip():
            prompt.replace_text(text)
        prompt.focus()

    def focus_prompt(self) -> None:
        """Focus the prompt."""
        self.query_one(Prompt).focus()

    def point_to_block(self, block: Block) -> None:
        """Scroll to a block of the view and select it."""
        self._update_widgets()
        self.query_one(Transcript).select_block(block.key)

    # Messages of the prompt

    def on_prompt_message_submitted(self, event: Prompt.MessageSubmitted) -> None:
        self.show_reply("")
        self._controller.set_error("")
        self._save_input(event.text)
        if not self._actions.handle_command(event.text):
            self._controller.queue_message(event.text, double_text="steer" if event.steer else None)

    def restore_refused(self, text: str, reason: str) -> None:
        """Return a rejected text to the prompt, and show the reason."""
        self.show_reply(reason)
        if text:
            self.query_one(Prompt).restore_text(text)

    def on_prompt_quit_requested(self) -> None:
        # Input after a key that opens another screen is meant for that screen.
        if not self._actions.is_opening:
            self._actions.quit_app()

    def on_prompt_text_edited(self, _event: Prompt.TextEdited) -> None:
        prompt = self.query_one(Prompt)
        self._toggle_help(is_wanted=prompt.text == HELP)
        last = prompt.text.rsplit(maxsplit=1)[-1:] if prompt.text else []
        begun = prompt.text.startswith("/") and " " not in prompt.text
        if begun or (last and last[0].startswith("@") and not prompt.text[-1:].isspace()):
            self.run_worker(
                partial(self._load_completions, prompt.text), group="propose", exclusive=True
            )
        else:
            self.query_one(CompletionMenu).show_completions(None)

    def _toggle_help(self, *, is_wanted: bool) -> None:
        """Show or hide the keys above the prompt."""
        shown = self.query_one("#help", Static)
        if is_wanted != shown.has_class("open"):
            shown.set_class(is_wanted, "open")
            shown.update(build_overview(self.size.width - 4) if is_wanted else "")

    async def _load_completions(self, text: str) -> None:
        try:
            found = await self._controller.call(methods.COMPLETE, CompleteParams(text=text))
        except CallFailed:
            return
        if self.query_one(Prompt).text == text:
            typed = text[found.start : found.end].strip()
            exact = [one.text.strip() for one in found.items] == [typed]
            self.query_one(CompletionMenu).show_completions(None if exact else found, of=text)

    # Messages of the transcript

    def on_transcript_older_requested(self) -> None:
        self.run_worker(self._load_older, group="older", exclusive=True)

    async def _load_older(self) -> None:
        try:
            await self._controller.load_older()
        except CallFailed as error:
            self._controller.set_error(str(error))

    def on_transcript_action_requested(self, event: Transcript.ActionRequested) -> None:
        self._actions.start_block_action(event.action, event.block)

    # Keys

    def action_back(self) -> None:
        prompt = self.query_one(Prompt)
        if not prompt.has_focus:
            prompt.focus()
        elif prompt.text == HELP:
            prompt.replace_text("")
        elif self._controller.view.is_running:
            self._actions.start_action("stop", self._controller.interrupt_turn)
        else:
            self.show_reply("")

    def action_cut_short(self) -> None:
        """Stop the answer; a second press quits."""
        self._interrupt_or_quit(has_cleared=False)

    def on_prompt_interrupt_requested(self, event: Prompt.InterruptRequested) -> None:
        self._interrupt_or_quit(has_cleared=event.has_cleared)

    def _interrupt_or_quit(self, *, has_cleared: bool) -> None:
        if self._actions.is_opening:
            return  # as Ctrl-D
        if self._quit_timer is not None:
            self._actions.quit_app()
            return
        self._quit_timer = self.set_timer(QUIT_WINDOW, self._end_quit_window)
        if not has_cleared and self._controller.view.is_running:
            self._actions.start_action("stop", self._controller.interrupt_turn)
        self.show_reply(_QUIT_HINT)

    def _end_quit_window(self) -> None:
        """Remove the hint once it does not hold any more."""
        self._quit_timer = None
        shown = self.query_one("#reply", Static)
        if str(shown.content) == _QUIT_HINT:
            self.show_reply("")

    def action_page(self, step: int) -> None:
        transcript = self.query_one(Transcript)
        if step > 1:
            transcript.scroll_end(animate=False, force=True)
        else:
            transcript.scroll_relative(y=step * (transcript.size.height - 2), animate=False)

    def action_question(self) -> None:
        self._actions.open_screen(self._actions.show_approvals)

    def action_keys(self) -> None:
        self._actions.open_screen(self._actions.show_help)

    def action_sessions(self) -> None:
        self._actions.open_screen(self._actions.show_conversations)

    def action_lineage(self) -> None:
        self._actions.open_screen(self._actions.show_lineage)

    def action_compaction(self) -> None:
        self._actions.open_screen(self._actions.show_compaction)

    def action_models(self) -> None:
        self._actions.open_screen(self._actions.choose_model)

    def action_queue(self) -> None:
        self._actions.open_screen(self._actions.edit_queue)


def _bar_state(view: ViewState) -> tuple[object, ...]:
    """Return the parts of the view that the bars show."""
    live = (bool(view.live.text), bool(view.live.thinking))
    now = (view.link, view.trouble, view.gone, view.sending)
    return now, view.answered, view.conversation, view.state, view.usage, view.commands, live
