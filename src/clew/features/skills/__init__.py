"""Skills: folders of instructions and scripts, which the model uses once a person trusts them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from clew.plugin import Command

if TYPE_CHECKING:
    from clew.plugin import CommandCall, Registry

#: Operations of HTTP and JSON-RPC.
OPERATIONS: Final = ("skills.list", "skills.get", "skills.trust", "skills.untrust")


def register(registry: Registry) -> None:
    """Register the feature."""
    registry.add_migrations(
        f"{__name__}.migrations", of_conversation={"skills_loaded": "conversation"}
    )
    _add_commands(registry)
    for name in OPERATIONS:
        registry.add_operation(name, partial(_make_operation, name))


def _add_commands(registry: Registry) -> None:
    registry.add_command(
        Command(
            name="skills",
            help="list the skills, or show what one holds",
            run=run_skills_command,
            arguments="[NAME]",
        )
    )
    registry.add_command(
        Command(
            name="skills trust",
            help="show a skill; with its digest, let the model use it as it is now",
            run=run_trust_command,
            arguments="NAME [DIGEST]",
            operator=True,
        )
    )
    registry.add_command(
        Command(
            name="skills untrust",
            help="take the trust in a skill back",
            run=run_untrust_command,
            arguments="NAME",
            operator=True,
        )
    )


async def run_skills_command(call: CommandCall, argument: str) -> str:
    """List the skills, or show one."""
    from clew.features.skills import chat_commands  # noqa: PLC0415  (declared by every command, needed by few)

    return await chat_commands.run_skills(call, argument)


async def run_trust_command(call: CommandCall, argument: str) -> str:
    """Show a skill, or trust it."""
    from clew.features.skills import chat_commands  # noqa: PLC0415  (as above)

    return await chat_commands.run_trust(call, argument)


async def run_untrust_command(call: CommandCall, argument: str) -> str:
    """Take the trust in a skill back."""
    from clew.features.skills import chat_commands  # noqa: PLC0415  (as above)

    return await chat_commands.run_untrust(call, argument)


def _make_operation(name: str) -> object:
    from clew.features.skills import operations  # noqa: PLC0415  (only servers need them)

    return operations.OPERATIONS[name]
