"""The tool ``delegate``, as the model sees it; what it needs is imported when it is called."""

# ruff: noqa: PLC0415

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.features.delegation.settings import DelegationSettings


def make_delegate(get_settings: Callable[[], DelegationSettings]) -> Callable[..., object]:
    """Return the tool."""

    async def delegate(task: str, background: bool = False) -> str:
        """
        Give a task to another agent, which knows only what you write; return its answer.

        It has your tools and the same workspace. Several calls at once run side by side.

        Args:
            task: What to do, with all that it needs to know.
            background: Do not wait; you are told when it ends.
        """
        from clew.features.delegation import tool_calls

        return await tool_calls.delegate(task, get_settings(), background=background)

    return delegate
