"""
Keys take effect in the order in which they are typed.

The library puts a key that writes into the field at once, and lets one that is bound to an action
rise up to the app first. Whoever types quickly, or pastes into a terminal that does not say so,
would have the next characters written before the last one is deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.widgets import Input, TextArea

if TYPE_CHECKING:
    from textual import events
    from textual.app import App


async def acted(field: Input | TextArea, event: events.Key) -> bool:
    """Carry out at once what a field has bound to a key; whether it has."""
    bound = field._bindings.key_to_bindings.get(event.key, ())  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    for binding in bound:
        if not binding.priority and await _app(field).run_action(binding.action, field):
            event.prevent_default().stop()
            return True
    return False


def _app(field: Input | TextArea) -> App[None]:
    return cast("App[None]", field.app)


class Line(Input):
    """One line to type in."""

    async def _on_key(self, event: events.Key) -> None:
        if not await acted(self, event):
            await super()._on_key(event)


class Lines(TextArea):
    """Several lines to type in."""

    async def _on_key(self, event: events.Key) -> None:
        if not await acted(self, event):
            await super()._on_key(event)
