"""Telling a person, or a program, what becomes of an input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.cli.terminal import one_line
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
from clew.core.text import sanitize_text
from clew.core.turn import TurnOutcome

if TYPE_CHECKING:
    from clew.cli.talk import Told
    from clew.cli.terminal import Output
    from clew.core.entry import Entry


#: How a call ended that did not do what it was asked for.
_NOT_DONE: Final = {
    "denied": "✗ {} was refused and did not run",
    "cancelled": "✗ {} was cancelled",
    "error": "✗ {} failed",
    "retry": "· {} asks to be called in another way",
    "unknown": "✗ {} was interrupted; nobody knows whether it had its effect",
}


class Teller:
    """
    Prints one input's events: what the agent says on ``out``, remarks and failures on ``notes``.

    Each text is printed once. What was streamed is completed by the text that is stored; what came
    without pieces (another process runs the turn, or pieces were left out) is printed whole.
    """

    def __init__(self, out: Output, notes: Output) -> None:
        self._out, self._notes = out, notes
        #: The text since the last message that is complete.
        self._shown = ""
        self._thinking = False
        #: Whether the last message of the turn is printed already.
        self._answered = False
        self._noticed: list[str] = []

    def tell(self, event: Told) -> None:
        match event:
            case Delta(kind=DeltaKind.TEXT, text=text) | Snapshot(text=text):
                self._say(sanitize_text(text))
            case Delta():
                self._think()
            case Retracted(reason=reason):
                self._retract(reason)
            case ToolCalled():
                self._call(event)
            case EntryAppended(entry=entry):
                self._tell_entry(entry)
            case InputCompleted():
                self._end(event)
            case TurnStarted() | TurnFinished() | ConversationStateChanged():
                pass

    def _tell_entry(self, entry: Entry) -> None:
        if entry.kind is EntryKind.MESSAGE and entry.role is Role.ASSISTANT:
            self._complete(entry.text)
            # Without text it stands for an answer that did not come.
            self._answered = bool(entry.text) and not entry.calls
        elif entry.kind is EntryKind.EVENT:
            self._notice(entry.text)

    def _say(self, text: str) -> None:
        self._shown += text
        self._answered = False
        self._out.write(text)

    def _think(self) -> None:
        if not self._thinking and self._notes.is_terminal and not self._shown:
            self._notes.dim("(thinking)")
        self._thinking = True

    def _retract(self, reason: str) -> None:
        shown, self._shown = self._shown, ""
        self._out.end_line()
        what = "broken off, the text above is void" if shown else "no answer yet"
        self._notes.dim(f"({what}: {one_line(reason, 300)})")

    def _call(self, event: ToolCalled) -> None:
        self._out.end_line()
        if event.status is None:
            self._notes.dim(f"· {event.tool}({one_line(event.args)})")
        elif event.status != "ok":
            self._notes.dim(
                _NOT_DONE.get(event.status, f"✗ {{}}: {event.status}").format(event.tool)
            )

    def _notice(self, text: str) -> None:
        self._noticed.append(text)
        self._out.end_line()
        self._notes.dim(f"({one_line(text, 500)})")

    def _complete(self, text: str) -> None:
        rest = rest_of(text, self._shown)
        if rest is None:
            self._out.end_line()
            rest = text
        self._out.write(rest)
        self._out.end_line()
        self._shown, self._thinking = "", False

    def _end(self, end: InputCompleted) -> None:
        self._outcome(end)
        for text in end.notices:
            if text not in self._noticed:
                self._notice(text)

    def _outcome(self, end: InputCompleted) -> None:
        if end.turn is None:
            self._without_turn(end)
        elif end.turn.outcome is TurnOutcome.ANSWERED:
            if not self._answered:
                self._complete(end.text)
        else:
            self._out.end_line()
            if end.turn.outcome is TurnOutcome.FAILED:
                self._notes.write(f"{end.text}\n")
            else:
                self._notes.dim("(stopped)")

    def _without_turn(self, end: InputCompleted) -> None:
        if end.outcome is InboxOutcome.EXECUTED:
            self._complete(end.note or "done")
            return
        self._out.end_line()
        self._notes.dim(f"({end.outcome.value}{f': {end.note}' if end.note else ''})")


def rest_of(text: str, shown: str) -> str | None:
    """
    What of ``text`` was not shown yet; ``None`` if ``shown`` is not how it begins.

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


def succeeded(end: InputCompleted) -> bool:
    """Whether the input led to what it asked for."""
    if end.turn is None:
        return end.outcome is InboxOutcome.EXECUTED
    return end.turn.outcome is TurnOutcome.ANSWERED
