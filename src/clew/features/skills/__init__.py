"""Skills: folders of instructions and scripts, which the model uses once a person trusts them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from clew.features.skills.doctor import SkillsCheck
from clew.features.skills.tool import load_skill, make_load_facts
from clew.plugin import Command
from clew.plugin.declarations import SkillFolder
from clew.plugin.registry import Features

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from clew.core.ids import ConversationId
    from clew.plugin import CallNarrowing, CommandCall, FeatureContext, Registry, TurnContext
    from clew.store.contract import Tx

#: Operations of HTTP and JSON-RPC.
OPERATIONS: Final = ("skill.list", "skill.get", "skill.trust", "skill.untrust")


def register(registry: Registry) -> None:
    """Register the feature."""
    registry.add_migrations(
        f"{__name__}.migrations", of_conversation={"skills_loaded": "conversation"}
    )
    check = SkillsCheck()
    registry.add_settings_check("skills", check.keep_settings)
    registry.add_doctor_check("skills", check.run)
    registry.add_instructions("skills", render_skills)
    registry.add_tool(load_skill, effect="pure", facts=make_load_facts, when=has_skills)
    registry.add_narrowing("skills", find_narrowings)
    registry.add_readable_folders("skills", find_folders)
    registry.add_after_turn("untrusted skills", tell_untrusted, every_end=True)
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
    registry.add_command(
        Command(
            name="skills unload",
            help="end a skill that was loaded here, and with it what it asks about",
            run=run_unload_command,
            arguments="NAME",
            operator=True,
        )
    )


def may_have_skills(context: TurnContext) -> bool:
    """Return whether there is a folder of skills; imports nothing."""
    settings = context.services.settings
    features = settings.loaded_features
    if isinstance(features, Features) and features.values(SkillFolder):
        return True
    from clew.config.workspaces import find_workspace  # noqa: PLC0415  (needed by turns only)

    workspace = find_workspace(settings, context.scope).root
    return any(one.is_dir() for one in (settings.home / "skills", workspace / ".agents/skills"))


async def render_skills(context: TurnContext) -> str | None:
    """Return the catalogue of trusted skills, and those that are in force."""
    if not may_have_skills(context):
        return None
    from clew.features.skills import session_text  # noqa: PLC0415  (only where there are skills)

    return await session_text.render(context)


async def has_skills(context: TurnContext) -> bool:
    """Return whether there is a skill that the model may load, or was before it changed."""
    if not may_have_skills(context):
        return False
    from clew.features.skills import session_text  # noqa: PLC0415  (only where there are skills)

    return await session_text.has_trusted(context)


def find_narrowings(t: Tx, context: TurnContext) -> Sequence[CallNarrowing]:
    """Return what the loaded skills of a conversation let run without asking at most."""
    from clew.features.skills import narrowing  # noqa: PLC0415  (declared by every command, needed by turns)

    return narrowing.find_narrowings(t, context)


async def find_folders(context: TurnContext) -> Sequence[Path]:
    """Return the folders of the loaded skills, for commands."""
    if not may_have_skills(context):
        return ()
    from clew.features.skills import session_text  # noqa: PLC0415  (only where there are skills)

    return await session_text.find_folders(context)


async def tell_untrusted(context: FeatureContext, conversation: ConversationId) -> None:
    """Tell people which skills are not trusted, once."""
    from clew.features.skills import telling  # noqa: PLC0415  (declared by every command, needed by few)

    await telling.tell_untrusted(context, conversation)


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


async def run_unload_command(call: CommandCall, argument: str) -> str:
    """End a skill that was loaded."""
    from clew.features.skills import chat_commands  # noqa: PLC0415  (as above)

    return await chat_commands.run_unload(call, argument)


def _make_operation(name: str) -> object:
    from clew.features.skills import operations  # noqa: PLC0415  (only servers need them)

    return operations.OPERATIONS[name]
