"""The screen of a conversation."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Static

from clew.tui.screens.deeds import Deeds
from clew.tui.screens.keys import overview
from clew.tui.state.view import Link
from clew.tui.widgets.activity import Activity
from clew.tui.widgets.bars import Question, StatusBar, TitleBar, Waiting
from clew.tui.widgets.prompt import Prompt
from clew.tui.widgets.proposals import Proposals
from clew.tui.widgets.transcript import Transcript
from clew.tui.widgets.welcome import Welcome
from clew.wire import methods
from clew.wire.errors import CallFailed
from clew.wire.params import CompleteParams

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from clew.tui.desk import Desk
    from clew.tui.state.typed import History
    from clew.tui.state.view import Block, View

#: Seconds between two drawings while much is told: about 15 in a second.
PACE = 1 / 15
#: At most a part of the time goes into drawing: what takes long is drawn less often.
_SHARE = 4
#: Seconds in which Ctrl-C, pressed again, leaves.
_AGAIN = 2.0
#: Alone in the prompt, it shows the keys.
HELP = "?"
#: Lines below which the prompt has no frame.
LOW = 16
#: Columns of the last line that its keys take.
_KEYS = 32


class Chat(Screen[None]):
    """Shows the desk's view, and hands to the desk what a person does."""

    AUTO_FOCUS = "#prompt"
    DEFAULT_CSS = """
    Chat { layout: vertical; }
    Chat #reply { height: auto; max-height: 12; padding: 0 1; display: none; background: $panel; }
    Chat #help { height: auto; max-height: 14; padding: 0 1; display: none; background: $panel; }
    Chat #reply.open, Chat #help.open { display: block; }
    Chat #low { height: auto; }
    Chat.low Prompt, Chat.low Prompt:focus { border: none; max-height: 4; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Stop", show=False),
        Binding("ctrl+c", "cut_short", "Stop", show=False),
        Binding("f1", "keys", "Keys", priority=True),
        Binding("f2,ctrl+o", "sessions", "Conversations", priority=True),
        Binding("f3,ctrl+t", "lineage", "Lineage", priority=True),
        Binding("f4,ctrl+r", "compaction", "Summary", priority=True),
        Binding("f5,ctrl+l", "models", "Model", priority=True),
        Binding("f6,ctrl+n", "queue", "What waits", priority=True),
        Binding("f7,ctrl+g", "question", "Question", priority=True),
        Binding("pageup", "page(-1)", "Up", priority=True),
        Binding("pagedown", "page(1)", "Down", priority=True),
        Binding("ctrl+end", "page(1000)", "End", priority=True, show=False),
    ]

    def __init__(
        self,
        desk: Desk,
        typed: History,
        keep: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        super().__init__()
        self._desk, self._typed, self._keep = desk, typed, keep
        self._deeds = Deeds(self, desk, clock)
        self._shown: View | None = None
        self._clock, self._leaves_until = clock, 0.0
        self._due = False
        self._pace = PACE
        #: What was typed before this screen was there; ``None`` since it is.
        self._early: list[events.Event] | None = []
        #: Keys that were typed here, and not in a dialog.
        self.keys_typed = 0

    def compose(self) -> ComposeResult:
        yield TitleBar()
        yield Welcome()
        yield Transcript()
        with Vertical(id="low"):
            yield Activity()
            yield Static(id="reply")
            yield Static(id="help")
            yield Question()
            yield Waiting()
            proposals = Proposals()
            yield proposals
            yield Prompt(self._typed, proposals)
            yield StatusBar()

    def on_mount(self) -> None:
        early, self._early = self._early or [], None
        for event in early:
            self._hand_to_prompt(event)
        self.query_one(Prompt).focus()
        self._draw()

    def _forward_event(self, event: events.Event) -> None:
        """
        What is typed before anything has the focus is meant for the prompt.

        Keys come as soon as the terminal is read, also those from before there was a screen. They
        are not left to wait in this screen's own queue: it would find the prompt in focus then.
        """
        self.keys_typed += isinstance(event, (events.Key, events.Paste))
        if not isinstance(event, (events.Key, events.Paste)) or self.focused is not None:
            super()._forward_event(event)
        elif self._early is not None:
            self._early.append(event)
        else:
            self._hand_to_prompt(event)

    def _hand_to_prompt(self, event: events.Event) -> None:
        prompt = self.query_one(Prompt).focus()
        prompt._forward_event(event)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.height < LOW, "low")
        self.query_one(Prompt).fit(event.size.width)
        self.query_one(Welcome).show(self._desk.view, lines=event.size.height)
        self.query_one(StatusBar).show(self._desk.view)

    def changed(self) -> None:
        """The view is another one: draw it, with whatever else comes in the same moment."""
        if not self._due and self.is_attached:
            self._due = True
            self.set_timer(self._pace, self._draw)

    def _draw(self) -> None:
        self._due = False
        begun = time.perf_counter()
        self._show_view()
        self._pace = max(PACE, _SHARE * (time.perf_counter() - begun))

    def _show_view(self) -> None:
        view, before = self._desk.view, self._shown
        if view is before or not self.is_attached:
            return
        self._shown = view
        self.query_one(Transcript).show(view)
        self.query_one(Welcome).show(view, lines=self.size.height)
        self.query_one(Activity).show(view)
        if (
            view.link is Link.LOST
            and view.trouble
            and (before is None or before.trouble != view.trouble)
        ):
            self._tell_in_full(view.trouble)
        if before is not None and _around(before) == _around(view):
            return
        self.query_one(TitleBar).show(view)
        self.query_one(StatusBar).show(view)
        self.query_one(Waiting).show(view)
        self.query_one(Question).show(view)
        self._deeds.ask(view.approvals)

    def _tell_in_full(self, trouble: str) -> None:
        """Have room for why nothing is reached, where the last line has too little."""
        if len(trouble) > self.size.width - _KEYS:
            self.reply(trouble)

    def redraw(self) -> None:
        """The colours are others."""
        self.query_one(Transcript).redraw()

    def reply(self, text: str) -> None:
        """Show what a command answered, until something else is done."""
        shown = self.query_one("#reply", Static)
        shown.set_class(bool(text), "open")
        shown.update(text)

    def write(self, text: str) -> None:
        """Have a text in the prompt, if nothing is being written there."""
        prompt = self.query_one(Prompt)
        if not prompt.text.strip():
            prompt.put(text)
        prompt.focus()

    def focus_prompt(self) -> None:
        """Have what is typed go into the prompt."""
        self.query_one(Prompt).focus()

    def point_to(self, block: Block) -> None:
        """Show a block of the view, and point at it."""
        self._show_view()
        self.query_one(Transcript).point_to(block.key)

    # What the prompt says

    def on_prompt_sent(self, event: Prompt.Sent) -> None:
        self.reply("")
        self._desk.trouble("")
        self._keep(event.text)
        if not self._deeds.command(event.text):
            self._desk.say(event.text, double_text="steer" if event.steer else None)

    def refused(self, text: str, reason: str) -> None:
        """Give back what was not taken, and say why."""
        self.reply(reason)
        if text:
            self.query_one(Prompt).give_back(text)

    def on_prompt_left(self) -> None:
        # What follows a key that opens another screen is meant for that.
        if not self._deeds.is_opening:
            self._deeds.leave()

    def on_prompt_typed(self, _event: Prompt.Typed) -> None:
        prompt = self.query_one(Prompt)
        self._help(is_wanted=prompt.text == HELP)
        last = prompt.text.rsplit(maxsplit=1)[-1:] if prompt.text else []
        begun = prompt.text.startswith("/") and " " not in prompt.text
        if begun or (last and last[0].startswith("@") and not prompt.text[-1:].isspace()):
            self.run_worker(partial(self._propose, prompt.text), group="propose", exclusive=True)
        else:
            self.query_one(Proposals).offer(None)

    def _help(self, *, is_wanted: bool) -> None:
        """Show the keys above the prompt, or nothing there."""
        shown = self.query_one("#help", Static)
        if is_wanted != shown.has_class("open"):
            shown.set_class(is_wanted, "open")
            shown.update(overview(self.size.width - 4) if is_wanted else "")

    async def _propose(self, text: str) -> None:
        try:
            found = await self._desk.call(methods.COMPLETE, CompleteParams(text=text))
        except CallFailed:
            return
        if self.query_one(Prompt).text == text:
            typed = text[found.start : found.end].strip()
            exact = [one.text.strip() for one in found.items] == [typed]
            self.query_one(Proposals).offer(None if exact else found, of=text)

    # What the transcript says

    def on_transcript_wants_older(self) -> None:
        self.run_worker(self._older, group="older", exclusive=True)

    async def _older(self) -> None:
        try:
            await self._desk.older()
        except CallFailed as error:
            self._desk.trouble(str(error))

    def on_transcript_done(self, event: Transcript.Done) -> None:
        self._deeds.pointed(event.deed, event.block)

    # Keys

    def action_back(self) -> None:
        prompt = self.query_one(Prompt)
        if not prompt.has_focus:
            prompt.focus()
        elif prompt.text == HELP:
            prompt.put("")
        elif self._desk.view.is_running:
            self._deeds.start("stop", self._desk.interrupt)
        else:
            self.reply("")

    def action_cut_short(self) -> None:
        """Stop the answer; leave the second time."""
        self._cut_short(has_cleared=False)

    def on_prompt_cut_short(self, event: Prompt.CutShort) -> None:
        self._cut_short(has_cleared=event.has_cleared)

    def _cut_short(self, *, has_cleared: bool) -> None:
        now = self._clock()
        if now < self._leaves_until:
            self._deeds.leave()
            return
        self._leaves_until = now + _AGAIN
        if not has_cleared and self._desk.view.is_running:
            self._deeds.start("stop", self._desk.interrupt)
        self.reply("Press Ctrl-C again to leave.")

    def action_page(self, step: int) -> None:
        transcript = self.query_one(Transcript)
        if step > 1:
            transcript.scroll_end(animate=False, force=True)
        else:
            transcript.scroll_relative(y=step * (transcript.size.height - 2), animate=False)

    def action_question(self) -> None:
        self._deeds.show(self._deeds.approvals)

    def action_keys(self) -> None:
        self._deeds.show(self._deeds.keys)

    def action_sessions(self) -> None:
        self._deeds.show(self._deeds.sessions)

    def action_lineage(self) -> None:
        self._deeds.show(self._deeds.lineage)

    def action_compaction(self) -> None:
        self._deeds.show(self._deeds.compaction)

    def action_models(self) -> None:
        self._deeds.show(self._deeds.models)

    def action_queue(self) -> None:
        self._deeds.show(self._deeds.queue)


def _around(view: View) -> tuple[object, ...]:
    """What the lines around the conversation show."""
    live = (bool(view.live.text), bool(view.live.thinking))
    now = (view.link, view.trouble, view.gone, view.sending)
    return now, view.answered, view.conversation, view.state, view.usage, live
