"""The inputs that wait: to be changed, or taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding

from clew.tui.screens.picker import Choice, Narrowing
from clew.tui.state.words import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.binding import BindingType

    from clew.wire.records import QueuedShape


class QueueList(Narrowing):
    """In the order in which they will be answered."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+d", "pick('delete')", "Take back")]
    keys = "Enter changes · ^D takes back · Esc leaves"

    def __init__(self, queue: Sequence[QueuedShape]) -> None:
        choices = [
            Choice(key=one.inbox_id, text=one_line(one.text, 80), more=one.double_text)
            for one in queue
        ]
        super().__init__(choices, heading="What waits" if choices else "Nothing waits")
