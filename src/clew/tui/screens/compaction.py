"""Compaction screen: preview of a compaction, and its undo."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Input, Static

from clew.tui.screens.dialog import Dialog
from clew.tui.state.labels import flatten_text, format_count
from clew.tui.widgets.ordered_keys import SingleLineInput
from clew.wire import methods
from clew.wire.errors import CallFailed
from clew.wire.params import CompactParams

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from clew.tui.controller import ConversationController
    from clew.wire.models import LineShape
    from clew.wire.results import Compaction


class CompactionScreen(Dialog[str]):
    """Screen of replaced and kept messages; returns a report."""

    DEFAULT_CSS = """
    CompactionScreen { align: center middle; }
    CompactionScreen #box { width: 90%; max-width: 100; height: 85%; background: $surface;
        padding: 0 1; border: round $primary; }
    CompactionScreen Input { background: $panel; }
    CompactionScreen #head, CompactionScreen #keys { height: auto; }
    CompactionScreen #keys { color: $text-muted; }
    CompactionScreen VerticalScroll { height: 1fr; margin: 1 0; }
    CompactionScreen #lines { text-wrap: nowrap; text-overflow: ellipsis; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave"),
        Binding("enter", "summarise", "Summarise"),
        Binding("ctrl+u", "undo", "Undo the last one"),
        Binding("pageup", "scroll(-1)", "Up"),
        Binding("pagedown", "scroll(1)", "Down"),
    ]

    def __init__(self, desk: ConversationController) -> None:
        super().__init__()
        self._desk = desk
        #: The one of the preview: another one may be shown when it is to be summarised.
        self._conversation = desk.conversation_id
        #: A request is running: further keys are ignored.
        self._busy = False

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static("computing the preview …", id="head")
            yield SingleLineInput(
                placeholder="what matters most (may be empty)", id="focus", compact=True
            )
            with VerticalScroll(can_focus=False):
                yield Static(id="lines")
            yield Static("Enter summarises · ^U undoes the last one · Esc closes", id="keys")

    def on_mount(self) -> None:
        self.run_worker(self._load_preview, group="look")

    async def _load_preview(self) -> None:
        try:
            found = await self._request_compaction(dry_run=True)
        except CallFailed as error:
            self._show_status(str(error))
            return
        before, after = format_count(found.tokens_before), format_count(found.tokens_after)
        goes, stays = found.goes or [], found.stays or []
        told = f"{len(goes)} messages would become a summary, {len(stays)} stay"
        self._show_status(f"{told}: {before} tokens, {after} and the summary afterwards")
        if not self.is_open:
            return
        self.query_one("#lines", Static).update(
            Text("\n", no_wrap=True, overflow="ellipsis").join(
                [*_format_lines("goes", goes), *_format_lines("stays", stays)]
            )
        )

    async def _request_compaction(self, **given: object) -> Compaction:
        params = CompactParams.model_validate({"session_id": self._conversation, **given})
        return await self._desk.call(methods.COMPACT, params)

    def _show_status(self, text: str) -> None:
        if self.is_open:
            self.query_one("#head", Static).update(text)

    def action_summarise(self) -> None:
        focus = self.query_one("#focus", Input).value.strip()
        self._start_request("summarising …", focus=focus or None)

    def action_undo(self) -> None:
        self._start_request("undoing the last compaction …", undo=True)

    def _start_request(self, told: str, **given: object) -> None:
        if not self._busy:
            self._busy = True
            self._show_status(told)
            self.run_worker(partial(self._run_request, **given), group="do")

    async def _run_request(self, **given: object) -> None:
        try:
            done = await self._request_compaction(**given)
        except CallFailed as error:
            self._show_status(str(error))
            return
        finally:
            self._busy = False
        sizes = (
            f"{format_count(done.tokens_before)} tokens became {format_count(done.tokens_after)}"
        )
        what = "the compaction was undone" if given.get("undo") else "summarised"
        self.close(f"{what}: {sizes}" if done.moved else done.note)

    def action_scroll(self, step: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=8 * step, animate=False)

    def action_leave(self) -> None:
        self.close(None)


def _format_lines(what: str, lines: Sequence[LineShape]) -> list[Text]:
    return [
        Text.assemble(
            (f"{what:<6}", "bold" if what == "stays" else "italic"),
            f"{line.role:<10}{format_count(line.tokens):>6}  {flatten_text(line.text, 200)}",
            no_wrap=True,
            overflow="ellipsis",
        )
        for line in lines
    ]
