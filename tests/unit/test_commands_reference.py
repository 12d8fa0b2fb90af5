"""The page of chat commands says what the table says."""

from __future__ import annotations

from pathlib import Path

from clew.engine.chat_commands.registry import COMMANDS, render_reference

ROOT = Path(__file__).parents[2]

#: What the interface promises.
PROMISED = (
    "new reset stop compress compact undo retry branch rewind title sessions resume model queue "
    "status usage approve deny pair help"
)


def test_the_page_of_all_commands_is_up_to_date() -> None:
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    again = "python -m clew.engine.chat_commands.registry docs/reference/commands.md"
    assert page == render_reference(), f"write it anew: {again}"


def test_the_promised_commands_are_there_and_no_name_twice() -> None:
    names = [name for one in COMMANDS for name in (one.name, *one.aliases)]
    assert sorted(names) == sorted(PROMISED.split())


def test_every_help_is_one_line_that_begins_small_and_ends_open() -> None:
    for one in COMMANDS:
        assert "\n" not in one.help
        assert one.help[0].islower(), one.name
        assert not one.help.endswith("."), one.name
