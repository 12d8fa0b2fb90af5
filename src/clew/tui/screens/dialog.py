"""A screen above the conversation, which closes once."""

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
_LEAVING: Final = frozenset({"cancel", "leave"})


class Dialog(ModalScreen[R | None], Generic[R]):
    """
    Gives one result back, however often the key is pressed that closes it.

    Keys come as soon as it is on the stack, before there is anything in it: they are kept until
    then. Keys also come while it closes: they do nothing any more.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "cancel", "Leave", show=False, priority=True)
    ]
    _is_done = False
    _is_built = False

    def __init__(self) -> None:
        super().__init__()
        #: What was typed before there was anything to type in.
        self._early: list[events.Event] = []

    def _forward_event(self, event: events.Event) -> None:
        """Hand on what nothing has the focus for: it is meant for the first field."""
        if not isinstance(event, (events.Key, events.Paste)) or self.focused is not None:
            super()._forward_event(event)
        elif self._is_built:
            self._hand_on(event)
        else:
            self._early.append(event)

    def _hand_on(self, event: events.Event) -> None:
        fields = [*self.query(Input), *self.query(TextArea)]
        if fields:
            fields[0]._forward_event(event)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        else:
            super()._forward_event(event)

    def on_mount(self) -> None:
        """Take what was typed meanwhile."""
        self._is_built = True
        early, self._early = self._early, []
        for event in early:
            self._hand_on(event)

    @property
    def is_open(self) -> bool:
        """Whether anything can still be shown here: an answer may come when nobody waits for it."""
        return not self._is_done and self.is_attached

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """
        Let a key do nothing before this is built and once it is closed.

        A key that was typed on the screen below, or here before, may be carried out then: what it
        would look at is not there. Leaving looks at nothing.
        """
        is_usable = not self._is_done and (self._is_built or action in _LEAVING)
        return is_usable and super().check_action(action, parameters)

    def action_cancel(self) -> None:
        """Close without a result."""
        self.close(None)

    def close(self, result: R | None) -> None:
        """Close with a result, unless it is closed already."""
        if not self._is_done:
            self._is_done = True
            self.dismiss(result)
