"""Tools for the agent behind the screen."""

from __future__ import annotations

from pydantic_ai import Tool


def look(where: str) -> str:
    """Look somewhere."""
    return f"in {where} there is\na thread\nand a sword"


def pay(amount: int) -> str:
    """Pay somebody."""
    return f"paid {amount}"


tools = [Tool(look, metadata={"effect": "pure"}), Tool(pay, requires_approval=True)]
