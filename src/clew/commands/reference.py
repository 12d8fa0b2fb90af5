"""
The reference page of the built-in chat commands.

``python -m clew.commands.reference docs/reference/commands.md`` writes it.
"""

# Same width as the other pages.
# ruff: noqa: E501

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.commands.builtin import BUILTIN_COMMANDS
from clew.generated_page import write_page

if TYPE_CHECKING:
    from clew.commands.registry import ChatCommand

REFERENCE_HEADER = """\
# Chat commands

<!-- Made by `python -m clew.commands.reference docs/reference/commands.md`: do not edit. -->

Every front understands these: the terminal, chat platforms, JSON-RPC. They act on the conversation in which they
are written, and see only what its people may see. What stands in brackets may be left out.

*At once* says that a command is answered while a turn runs. The others are carried out in the conversation's
line: after the running turn, and before whatever was written later.

| command | also | what it does | at once |
|---|---|---|---|
"""


def render_reference() -> str:
    """Return the reference page of all commands."""
    return REFERENCE_HEADER + "".join(map(_render_row, BUILTIN_COMMANDS))


def _render_row(command: ChatCommand) -> str:
    also = ", ".join(f"`/{alias}`" for alias in command.aliases)
    usage = command.usage.replace("|", "\\|")
    return f"| `{usage}` | {also} | {command.help} | {'yes' if command.control else ''} |\n"


def main() -> None:
    """Write the page to the named file, else print it."""
    write_page(render_reference())


if __name__ == "__main__":
    main()
