"""
Keys take effect in the order in which they are typed.

The library puts a key that writes into the field at once, and lets one that is bound to an action
rise up to the app first. Whoever types quickly, or pastes into a terminal that does not say so,
would have the next characters written before the last one is deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.screen import ModalScreen
from textual.widgets import Input, TextArea

from clew.tui.text.pasted import pasted_text

if TYPE_CHECKING:
    from textual import events
    from textual.app import App
    from textual.widget import Widget


async def acted(field: Input | TextArea, event: events.Key) -> bool:
    """Carry out at once what a field, or the dialog that it is in, has bound to a key."""
    if isinstance(field.screen, ModalScreen) and await _acted(field.screen, field, event):
        return True
    return await _acted(field, field, event)


async def _acted(owner: Widget, field: Input | TextArea, event: events.Key) -> bool:
    bound = owner._bindings.key_to_bindings.get(event.key, ())  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    for binding in bound:
        if not binding.priority and await _app(field).run_action(binding.action, owner):
            event.prevent_default().stop()
            return True
    return False


def _app(field: Input | TextArea) -> App[None]:
    return cast("App[None]", field.app)


class Line(Input):
    """One line to type in; of a paste its lines become one."""

    def _on_paste(self, event: events.Paste) -> None:
        event.text = " ".join(pasted_text(event.text).split("\n"))

    async def _on_key(self, event: events.Key) -> None:
        if not await acted(self, event):
            await super()._on_key(event)


class Lines(TextArea):
    """Several lines to type in."""

    async def _on_paste(self, event: events.Paste) -> None:
        event.text = pasted_text(event.text)

    async def _on_key(self, event: events.Key) -> None:
        if not await acted(self, event):
            await super()._on_key(event)
