"""The page of chat commands says what the table says."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.commands.builtin import BUILTIN_COMMANDS, BUILTIN_REGISTRY
from clew.commands.reference import render_reference
from clew.commands.registry import ChatCommand, ChatCommandReply, CommandContext
from clew.errors import SettingsError

ROOT = Path(__file__).parents[2]

#: Names that must exist.
PROMISED = (
    "new reset stop compress compact undo retry branch rewind title sessions resume model queue "
    "restart status usage approve grants revoke why deny pair help"
)


def test_the_page_of_all_commands_is_up_to_date() -> None:
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    again = "python -m clew.commands.reference docs/reference/commands.md"
    assert page == render_reference(), f"write it anew: {again}"


def test_the_promised_commands_are_there_and_no_name_twice() -> None:
    names = [name for one in BUILTIN_COMMANDS for name in (one.name, *one.aliases)]
    assert sorted(names) == sorted(PROMISED.split())


def test_every_help_is_one_line_that_begins_small_and_ends_open() -> None:
    for one in BUILTIN_COMMANDS:
        assert "\n" not in one.help
        assert one.help[0].islower(), one.name
        assert not one.help.endswith("."), one.name


def test_features_add_commands_and_a_clash_names_both_owners() -> None:
    async def run(ctx: CommandContext, argument: str) -> ChatCommandReply:
        return ctx.reply(argument)

    jobs = ChatCommand(name="jobs", aliases=("j",), help="list jobs", run=run)
    extended = BUILTIN_REGISTRY.with_commands([jobs], owner="schedule")
    assert extended.commands == (*BUILTIN_COMMANDS, jobs)
    assert extended.find_command("J") is jobs
    assert BUILTIN_REGISTRY.find_command("jobs") is None
    for name, owner in (("j", "schedule"), ("compact", "clew")):
        clashing = ChatCommand(name="own", aliases=(name,), help="clash", run=run)
        with pytest.raises(SettingsError, match=f"/{name} is defined by {owner} and by mine"):
            extended.with_commands([clashing], owner="mine")
