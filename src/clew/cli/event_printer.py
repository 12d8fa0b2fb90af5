"""Printing of an input's events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.cli.output import to_single_line
from clew.core.byte_size import format_size
from clew.core.entry import EntryKind, Role
from clew.core.events import (
    ConversationStateChanged,
    Delta,
    DeltaKind,
    EntryAppended,
    InputCompleted,
    Retracted,
    Snapshot,
    ToolCalled,
    TurnFinished,
    TurnStarted,
)
from clew.core.inbox import InboxOutcome
from clew.core.sent_files import parse_files
from clew.core.text import sanitize_text
from clew.core.turn import TurnOutcome

if TYPE_CHECKING:
    from clew.cli.chat_client import InputEvent
    from clew.cli.output import Output
    from clew.core.entry import Entry
    from clew.core.sent_files import SentFile


#: Texts for tool calls that did not succeed.
_FAILED_CALL_TEXTS: Final = {
    "denied": "✗ {} was refused and did not run",
    "cancelled": "✗ {} was cancelled",
    "error": "✗ {} failed",
    "retry": "· {} asked for a corrected call",
    "unknown": "✗ {} was interrupted; it may or may not have taken effect",
}


class EventPrinter:
    """
    Printer of one input's events: answers on ``out``, remarks and failures on ``notes``.

    Each text is printed once. Streamed text is completed by the stored one; text that was
    not streamed (another process runs the turn, or deltas were dropped) is printed whole.
    """

    def __init__(self, out: Output, notes: Output) -> None:
        self._out, self._notes = out, notes
        #: The text since the last complete message.
        self._shown = ""
        self._thinking = False
        #: True if the last message of the turn is printed already.
        self._answered = False
        self._noticed: list[str] = []

    def print_event(self, event: InputEvent) -> None:
        match event:
            case Delta(kind=DeltaKind.TEXT, text=text) | Snapshot(text=text):
                self._print_text(sanitize_text(text))
            case Delta():
                self._note_thinking()
            case Retracted(reason=reason):
                self._note_retraction(reason)
            case ToolCalled():
                self._print_tool_call(event)
            case EntryAppended(entry=entry):
                self._print_entry(entry)
            case InputCompleted():
                self._print_end(event)
            case TurnStarted() | TurnFinished() | ConversationStateChanged():
                pass

    def _print_entry(self, entry: Entry) -> None:
        if entry.kind is EntryKind.MESSAGE and entry.role is Role.ASSISTANT:
            self._print_remaining(entry.text)
            # Without text it marks a missing answer.
            files = parse_files(entry.message)
            self._answered = bool(entry.text or files) and not entry.calls
            for file in files:
                self._print_file(entry, file)
        elif entry.kind is EntryKind.EVENT:
            self._print_notice(entry.text)

    def _print_file(self, entry: Entry, file: SentFile) -> None:
        said = f"{file.caption}: " if file.caption else ""
        self._notes.write(
            f"[{said}{to_single_line(file.name, 120)}, {format_size(file.size)}; to save it: "
            f"clew sessions file {entry.conversation_id} {file.attachment}]\n"
        )

    def _print_text(self, text: str) -> None:
        self._shown += text
        self._answered = False
        self._out.write(text)

    def _note_thinking(self) -> None:
        if not self._thinking and self._notes.is_terminal and not self._shown:
            self._notes.print_dim("(thinking)")
        self._thinking = True

    def _note_retraction(self, reason: str) -> None:
        shown, self._shown = self._shown, ""
        self._out.end_line()
        what = "interrupted; ignore the text above" if shown else "no answer yet"
        self._notes.print_dim(f"({what}: {to_single_line(reason, 300)})")

    def _print_tool_call(self, event: ToolCalled) -> None:
        self._out.end_line()
        if event.status is None:
            self._notes.print_dim(f"· {event.tool}({to_single_line(event.args)})")
        elif event.status != "ok":
            self._notes.print_dim(
                _FAILED_CALL_TEXTS.get(event.status, f"✗ {{}}: {event.status}").format(event.tool)
            )

    def _print_notice(self, text: str) -> None:
        self._noticed.append(text)
        self._out.end_line()
        self._notes.print_dim(f"({to_single_line(text, 500)})")

    def _print_remaining(self, text: str) -> None:
        rest = remaining_text(text, self._shown)
        if rest is None:
            self._out.end_line()
            rest = text
        self._out.write(rest)
        self._out.end_line()
        self._shown, self._thinking = "", False

    def _print_end(self, end: InputCompleted) -> None:
        self._print_outcome(end)
        for text in end.notices:
            if text not in self._noticed:
                self._print_notice(text)

    def _print_outcome(self, end: InputCompleted) -> None:
        if end.turn is None:
            self._print_turnless_outcome(end)
        elif end.turn.outcome is TurnOutcome.ANSWERED:
            if not self._answered:
                self._print_remaining(end.text)
        else:
            self._out.end_line()
            if end.turn.outcome is TurnOutcome.FAILED:
                self._notes.write(f"{end.text}\n")
            else:
                self._notes.print_dim("(stopped)")

    def _print_turnless_outcome(self, end: InputCompleted) -> None:
        if end.outcome is InboxOutcome.EXECUTED:
            self._print_remaining(end.note or "done")
            return
        self._out.end_line()
        self._notes.print_dim(f"({end.outcome.value}{f': {end.note}' if end.note else ''})")


def remaining_text(text: str, shown: str) -> str | None:
    """
    Return the part of ``text`` not shown yet; ``None`` if ``shown`` is not its prefix.

    The parts of a response are stored with line ends between them, which are not streamed.
    """
    at = 0
    for character in shown:
        while at < len(text) and text[at] != character and text[at] == "\n":
            at += 1
        if at == len(text) or text[at] != character:
            return None
        at += 1
    return text[at:]


def is_success(end: InputCompleted) -> bool:
    """Return whether the input succeeded."""
    if end.turn is None:
        return end.outcome is InboxOutcome.EXECUTED
    return end.turn.outcome is TurnOutcome.ANSWERED
