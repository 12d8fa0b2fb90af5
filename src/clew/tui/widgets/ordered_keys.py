"""
Input fields whose keys take effect in the order in which they are typed.

The library inserts a printable key at once, but lets a key that is bound to an action
bubble up to the app first. For fast typists, and for pastes in terminals without bracketed
paste, the next characters would be inserted before the previous one is deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.screen import ModalScreen
from textual.widgets import Input, TextArea

from clew.tui.text.pasted import decode_paste

if TYPE_CHECKING:
    from textual import events
    from textual.app import App
    from textual.widget import Widget


async def run_bound_action(field: Input | TextArea, event: events.Key) -> bool:
    """Run at once what a field, or its screen, has bound to a key; return whether it had."""
    owners = [field, field.screen]
    # A dialog is closed by a key that its fields use, too.
    if isinstance(field.screen, ModalScreen):
        owners.reverse()
    for owner in owners:
        if await _run_binding(owner, field, event):
            return True
    return False


async def _run_binding(owner: Widget, field: Input | TextArea, event: events.Key) -> bool:
    bound = owner._bindings.key_to_bindings.get(event.key, ())  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    for binding in bound:
        if not binding.priority and await _app_of(field).run_action(binding.action, owner):
            event.prevent_default().stop()
            return True
    return False


def _app_of(field: Input | TextArea) -> App[None]:
    return cast("App[None]", field.app)


class SingleLineInput(Input):
    """Single-line field; joins the lines of a paste."""

    def _on_paste(self, event: events.Paste) -> None:
        event.text = " ".join(decode_paste(event.text).split("\n"))

    async def _on_key(self, event: events.Key) -> None:
        if not await run_bound_action(self, event):
            await super()._on_key(event)


class MultiLineInput(TextArea):
    """Multi-line field."""

    async def _on_paste(self, event: events.Paste) -> None:
        event.text = decode_paste(event.text)

    async def _on_key(self, event: events.Key) -> None:
        if not await run_bound_action(self, event):
            await super()._on_key(event)
