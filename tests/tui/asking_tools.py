"""A tool that asks before each call, and counts what it ran."""

from __future__ import annotations

from pydantic_ai import Tool

#: The calls that ran, in order.
ran: list[str] = []


def run(command: str) -> str:
    """Run a command."""
    ran.append(command)
    return f"ran {len(command)} characters"


tools = [Tool(run, requires_approval=True)]
