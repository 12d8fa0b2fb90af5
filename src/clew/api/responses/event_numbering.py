"""
Events of a response with their sequence numbers, as a pure function of its texts.

A number belongs to a place in the texts, not to a moment: a piece of text has the number of
its last letter, white space apart. However the pieces are cut, and whichever process sends
them, the same place has the same number; a client goes on after any number that it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.api.responses.resource import message_item, text_part
from clew.api.stream_reconciler import remaining_text

if TYPE_CHECKING:
    from collections.abc import Mapping

Event = dict[str, Any]

#: The response while there is nothing of it yet.
_BEGINNING: Mapping[str, Any] = {
    "status": "in_progress",
    "output": [],
    "usage": None,
    "error": None,
    "incomplete_details": None,
    "completed_at": None,
}
_END_EVENTS = {"completed": "response.completed", "incomplete": "response.incomplete"}


class EventNumbering:
    """The place in a response that its stream has reached."""

    def __init__(self, *, after: int = -1) -> None:
        #: Events up to this number were received.
        self._after = after
        self._next, self._position = 0, 0
        #: The item that is open, and the text of it so far.
        self._item: str | None = None
        self._text: str = ""
        #: White space at its end, which waits for the next letter.
        self._held: str = ""

    @property
    def has_open_item(self) -> bool:
        """Return whether text was sent that is not stored yet."""
        return self._item is not None

    @property
    def position(self) -> int:
        """Return the position of the output item that is open, or comes next."""
        return self._position

    def begin(self, response: Event) -> list[Event]:
        """Return the events before the first item."""
        told = {**response, **_BEGINNING}
        return [
            *self._number("response.created", response=told),
            *self._number("response.in_progress", response=told),
        ]

    def add_piece(self, id: str, piece: str) -> list[Event]:
        """Return the events for the next piece of an item's text."""
        whole = self._held + piece
        body = whole.rstrip()
        if not body:
            self._held = whole
            return []
        self._held = whole[len(body) :]
        opening = [] if self._item is not None else self._open_item(id)
        missing = _cut_letters(body, self._after + 1 - self._next)
        self._text += body
        self._next += _count_letters(body)
        delta = self._event(
            "response.output_text.delta", self._next - 1, delta=missing, logprobs=[], **self._part
        )
        return [*opening, delta] if missing else opening

    def add_snapshot(self, id: str, text: str) -> list[Event]:
        """Return the events for the text of an item so far."""
        missing = remaining_text(text, self._text)
        return self.add_piece(id, missing) if missing else []

    def finish_item(self, id: str, text: str) -> list[Event] | None:
        """Return the last events of an item; ``None`` if other text was sent before."""
        missing = remaining_text(text, self._text)
        if missing is None:
            return None
        self._held = ""
        pieces = self.add_piece(id, missing) if missing.strip() else []
        done = [
            *self._number("response.output_text.done", text=text, logprobs=[], **self._part),
            *self._number("response.content_part.done", part=text_part(text), **self._part),
            *self._number(
                "response.output_item.done",
                output_index=self._position,
                item=message_item(id, text),
            ),
        ]
        self._position += 1
        self._item, self._text, self._held = None, "", ""
        return [*pieces, *done]

    def finish(self, response: Event) -> list[Event]:
        """Return the last event of a response that has ended."""
        kind = _END_EVENTS.get(response["status"], "response.failed")
        return self._number(kind, response=response)

    def fail(self, *, code: str, message: str) -> Event:
        """Return the event for a stream that ends before its response; it has no place."""
        number = max(self._next - 1, 0)
        return self._event("error", number, code=code, message=message, param=None)

    @property
    def _part(self) -> Event:
        return {"item_id": self._item, "output_index": self._position, "content_index": 0}

    def _open_item(self, id: str) -> list[Event]:
        self._item = id
        item = message_item(id, None, status="in_progress")
        return [
            *self._number("response.output_item.added", output_index=self._position, item=item),
            *self._number("response.content_part.added", part=text_part(""), **self._part),
        ]

    def _number(self, kind: str, **fields: object) -> list[Event]:
        """Return the event with the next number, unless it was received."""
        number, self._next = self._next, self._next + 1
        return [self._event(kind, number, **fields)] if number > self._after else []

    def _event(self, kind: str, number: int, **fields: object) -> Event:
        return {"type": kind, "sequence_number": number, **fields}


def _count_letters(text: str) -> int:
    return sum(not letter.isspace() for letter in text)


def _cut_letters(text: str, count: int) -> str:
    """Return a text without its first letters and the white space before them."""
    if count <= 0:
        return text
    for at, letter in enumerate(text):
        count -= not letter.isspace()
        if count == 0:
            return text[at + 1 :]
    return ""
