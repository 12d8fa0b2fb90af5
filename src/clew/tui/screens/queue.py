"""Queue screen: the waiting inputs, to change or cancel them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding

from clew.tui.screens.picker import FilterPicker, PickerItem
from clew.tui.state.labels import flatten_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.binding import BindingType

    from clew.wire.models import QueuedShape


class QueuePicker(FilterPicker):
    """Picker of the waiting inputs, in processing order."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+d", "pick('delete')", "Take back")]
    keys = "Enter changes · ^D takes back · Esc leaves"

    def __init__(self, queue: Sequence[QueuedShape]) -> None:
        choices = [
            PickerItem(key=one.inbox_id, text=flatten_text(one.text, 80), more=one.double_text)
            for one in queue
        ]
        super().__init__(
            choices, heading="Waiting messages" if choices else "No messages are waiting"
        )
