"""The tools ``delegate`` and ``agents``, as the model sees them."""

# ruff: noqa: PLC0415

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.features.delegation.kinds import TaskTerms
    from clew.features.delegation.settings import DelegationSettings


def make_delegate(get_terms: Callable[[], TaskTerms]) -> Callable[..., object]:
    """Return the tool."""

    async def delegate(task: str, background: bool = False, kind: str = "") -> str:
        """
        Give a task to another agent, which knows only what you write; return its answer.

        It has your tools and the same workspace. Several calls at once run side by side.

        Args:
            task: What to do, with all that it needs to know.
            background: Do not wait; you are told when it ends.
            kind: Kind of agent, with other instructions and perhaps fewer tools.
        """
        from clew.features.delegation import tool_calls

        request = tool_calls.TaskRequest(task=task, agent=kind, background=background)
        return await tool_calls.delegate(request, get_terms())

    return delegate


def make_agents(get_settings: Callable[[], DelegationSettings]) -> Callable[..., object]:
    """Return the tool."""

    async def agents(
        action: Literal["list", "tell", "stop", "read"] = "list",
        task: str = "",
        text: str = "",
        start: int = 0,
    ) -> str:
        """
        Look after the tasks that you gave to other agents.

        Args:
            action: tell says something to a task, also one that has ended; read returns its answer.
            task: Its id.
            text: What to tell.
            start: Character from which to read.
        """
        from clew.features.delegation import agent_calls

        given = agent_calls.AgentCall(action=action, task=task, text=text, start=start)
        return await agent_calls.run(given, get_settings())

    return agents
