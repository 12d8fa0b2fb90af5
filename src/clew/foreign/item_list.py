"""Items of a conversation while they are read: in order, each with an id of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.entry import Role
from clew.foreign.chat_messages import make_event
from clew.foreign.conversations import ForeignEvent, ForeignMessage
from clew.record import replace

if TYPE_CHECKING:
    from clew.foreign.conversations import ForeignCompaction, ForeignItem
    from clew.foreign.jsonl import JsonLine


class ItemList:
    """List of items that numbers ids that repeat, and joins the parts of one answer."""

    def __init__(self, at: int) -> None:
        self.items: list[ForeignItem] = []
        #: Time of the last record that had one.
        self.at = at
        self._used: dict[str, int] = {}
        self._answers: dict[str, int] = {}
        self._compactions: list[int] = []

    def add(self, item: ForeignMessage | ForeignEvent | ForeignCompaction) -> None:
        """Add an item."""
        count = self._used[item.id] = self._used.get(item.id, 0) + 1
        self.items.append(item if count == 1 else replace(item, id=f"{item.id}#{count}"))

    def add_event(self, name: str, kind: str, text: str, record: object = None) -> None:
        """Add a record that is no message."""
        self.add(make_event(record, name=name, at=self.at, kind=kind, text=text))

    def add_damaged(self, line: JsonLine) -> None:
        """Add a line that is no JSON."""
        text = f"Line {line.number} is damaged"
        self.add_event(f"line-{line.number}", "damaged", text, line.raw)

    def add_answer(self, key: str, part: ForeignMessage) -> None:
        """Add a part of the model's answer to the other parts with the same key."""
        place = self._answers.get(key)
        if place is None:
            self._answers[key] = len(self.items)
            self.add(part)
            return
        whole = self.items[place]
        assert isinstance(whole, ForeignMessage)
        self.items[place] = replace(
            whole,
            text="\n\n".join(filter(None, (whole.text, part.text))),
            reasoning="\n\n".join(filter(None, (whole.reasoning, part.reasoning))),
            calls=[*whole.calls, *part.calls],
            files=[*whole.files, *part.files],
            model=part.model or whole.model,
            usage=part.usage or whole.usage,
        )

    def list_call_names(self) -> dict[str, str]:
        """Return the name of each tool that was called, by the id of the call."""
        return {
            call.id: call.name
            for item in self.items
            if isinstance(item, ForeignMessage) and item.role is Role.ASSISTANT
            for call in item.calls
        }
