"""Modal screen that closes once."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Generic, TypeVar

from textual import events
from textual.binding import Binding
from textual.screen import ModalScreen
from textual.widgets import Input, TextArea

if TYPE_CHECKING:
    from textual.binding import BindingType

R = TypeVar("R")

#: Actions that only close.
_CLOSING_ACTIONS: Final = frozenset({"cancel", "leave"})


class Dialog(ModalScreen[R | None], Generic[R]):
    """
    Modal screen that returns one result, however often its closing key is pressed.

    Keys that arrive before its widgets exist are kept for them. Keys that arrive while it
    closes are ignored.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "cancel", "Leave", show=False, priority=True)
    ]
    _is_done = False
    _is_built = False

    def __init__(self) -> None:
        super().__init__()
        #: Input that arrived before the widgets existed.
        self._early: list[events.Event] = []

    def _forward_event(self, event: events.Event) -> None:
        """Forward input to the first field while no widget has the focus."""
        if not isinstance(event, (events.Key, events.Paste)) or self.focused is not None:
            super()._forward_event(event)
        elif self._is_built:
            self._forward_to_field(event)
        else:
            self._early.append(event)

    def _forward_to_field(self, event: events.Event) -> None:
        fields = [*self.query(Input), *self.query(TextArea)]
        if fields:
            fields[0]._forward_event(event)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        else:
            super()._forward_event(event)

    def on_mount(self) -> None:
        """Process the input that arrived before the widgets existed."""
        self._is_built = True
        early, self._early = self._early, []
        for event in early:
            self._forward_to_field(event)

    @property
    def is_open(self) -> bool:
        """Return whether the dialog can still show something."""
        return not self._is_done and self.is_attached

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """
        Disable actions before the widgets exist and after closing.

        An action of a key that was typed earlier may run then, without the widgets that it
        needs. Closing actions need none.
        """
        is_usable = not self._is_done and (self._is_built or action in _CLOSING_ACTIONS)
        return is_usable and super().check_action(action, parameters)

    def action_cancel(self) -> None:
        """Close without a result."""
        self.close(None)

    def close(self, result: R | None) -> None:
        """Close with a result, unless it is already closed."""
        if not self._is_done:
            self._is_done = True
            self.dismiss(result)
