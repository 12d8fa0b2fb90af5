"""A screen above the conversation, which closes once."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from textual.binding import Binding
from textual.screen import ModalScreen

if TYPE_CHECKING:
    from textual.binding import BindingType

R = TypeVar("R")


class Dialog(ModalScreen[R | None], Generic[R]):
    """Gives one result back, however often the key is pressed that closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "cancel", "Leave", show=False, priority=True)
    ]
    _is_done = False

    @property
    def is_open(self) -> bool:
        """Whether anything can still be shown here: an answer may come when nobody waits for it."""
        return not self._is_done and self.is_attached

    def action_cancel(self) -> None:
        """Close without a result."""
        self.close(None)

    def close(self, result: R | None) -> None:
        """Close with a result, unless it is closed already."""
        if not self._is_done:
            self._is_done = True
            self.dismiss(result)
