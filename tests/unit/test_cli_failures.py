"""Failures of commands become a sentence and an exit code."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from clew.cli import commands, entry_point
from clew.cli.lazy import LazyCommand
from clew.distribution import VERSION
from clew.errors import LeaseHeld, NotFound, SettingsError, StoreFull

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]

raised: list[BaseException] = []


@click.command()
def fail() -> None:
    """Raise what the test asked for."""
    raise raised[-1]


@click.command()
@click.pass_context
def leave(ctx: click.Context) -> None:
    """Exit with a code, as ``fsck`` does with findings."""
    ctx.exit(1)


@pytest.fixture(autouse=True)
def two_commands() -> Iterator[None]:
    table = commands.root.entries
    commands.root.entries = {
        "fail": LazyCommand(__name__, "fail", "Fail."),
        "leave": LazyCommand(__name__, "leave", "Leave."),
        "absent": LazyCommand("clew.cli.absent", "absent", "Not there yet."),
    }
    yield
    commands.root.entries = table


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StoreFull("the disk is full"), 1),
        (LeaseHeld("c1", holder="o1"), 1),
        (NotFound("conversation", "x"), 2),
        (SettingsError("a", "b"), 2),
        (click.ClickException("no"), 1),
        (click.UsageError("no"), 2),
        (KeyboardInterrupt(), 130),
        (click.Abort(), 130),
    ],
)
def test_an_error_has_its_exit_code(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    raised.append(error)
    assert entry_point.run_command(["fail"]) == code
    assert "Traceback" not in capsys.readouterr().err


def test_an_error_is_reported_as_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    raised.append(StoreFull("the disk is full"))
    entry_point.run_command(["fail"])
    assert capsys.readouterr().err == "clew: the disk is full\n"


def test_errors_of_several_tasks_are_reported_each(capsys: pytest.CaptureFixture[str]) -> None:
    inner = ExceptionGroup("", [NotFound("turn", "t1")])
    raised.append(ExceptionGroup("tasks", [StoreFull("the disk is full"), inner]))
    assert entry_point.run_command(["fail"]) == 2
    assert capsys.readouterr().err == "clew: the disk is full\nclew: there is no turn 't1'\n"


def test_a_bug_is_not_hidden() -> None:
    raised.append(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        entry_point.run_command(["fail"])
    raised.append(ExceptionGroup("tasks", [StoreFull("x"), ZeroDivisionError()]))
    with pytest.raises(ExceptionGroup):
        entry_point.run_command(["fail"])


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == VERSION


def test_a_command_may_choose_its_exit_code() -> None:
    assert entry_point.run_command(["leave"]) == 1


def test_a_command_whose_module_is_missing_is_not_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert entry_point.run_command(["--help"]) == 0
    assert "absent" not in capsys.readouterr().out
    assert entry_point.run_command(["absent"]) == 2
    assert "No such command 'absent'" in capsys.readouterr().err
