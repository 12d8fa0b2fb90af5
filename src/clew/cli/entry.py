"""
The program's start and end: arguments in, exit code out, every expected failure as a sentence.

Exit codes: 0 done, 1 failed, 2 not as asked (usage, settings), 3 a gateway serves this home
already, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final, NoReturn, cast

import click

from clew.cli.commands import root
from clew.errors import ClewError, GatewayRunning, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FAILED: Final = 1
MISUSED: Final = 2
RUNNING: Final = 3
STOPPED: Final = 130
_STDERR: Final = 2
#: Failures that are told as a sentence; anything else is a bug and shows its traceback.
EXPECTED: Final = (ClewError, click.ClickException, click.Abort, KeyboardInterrupt, BrokenPipeError)
#: Options that only the program itself takes.
_GLOBAL: Final = ("--home", "--set")


def main() -> NoReturn:
    """Run the command that the arguments name, and exit."""
    # The store's threads get their turn beside a busy event loop: at the default of 5 ms a write
    # waits several times as long.
    sys.setswitchinterval(0.001)
    _have_standard_streams()
    sys.exit(run(sys.argv[1:]))


def _have_standard_streams() -> None:
    """A program may be started without: what is opened next would be written to as if it were."""
    opened = os.open(os.devnull, os.O_RDWR)
    while opened <= _STDERR:
        opened = os.open(os.devnull, os.O_RDWR)
    os.close(opened)
    # Python has none then, and click and argparse expect them. Standard input is told apart.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123


def run(args: Sequence[str]) -> int:
    """The exit code of a command, with what went wrong told on stderr."""
    try:
        returned: object = root.main(args=list(args), prog_name="clew", standalone_mode=False)
        sys.stdout.flush()
    except EXPECTED as error:
        return _tell(error)
    except BaseExceptionGroup as group:
        expected, rest = group.split(EXPECTED)
        if expected is None or rest is not None:
            raise
        return max(_tell(error) for error in _leaves(expected))
    # Only ``ctx.exit`` gives a number back.
    return returned if isinstance(returned, int) else 0


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(cast("BaseExceptionGroup[BaseException]", error))
        else:
            yield error


def _tell(error: BaseException) -> int:
    """Say what went wrong; the exit code for it."""
    if os.environ.get("CLEW_DEBUG"):
        sys.excepthook(type(error), error, error.__traceback__)
    if isinstance(error, BrokenPipeError):
        _abandon_stdout()
        return FAILED
    if isinstance(error, click.ClickException):
        _with_hint(error).show()
        return error.exit_code
    if isinstance(error, ClewError):
        click.echo(f"clew: {error}", err=True)
        return _code_for(error)
    return STOPPED


def _code_for(error: ClewError) -> int:
    match error:
        case UsageError():
            return MISUSED
        case GatewayRunning():
            return RUNNING
        case _:
            return FAILED


def _with_hint(error: click.ClickException) -> click.ClickException:
    if isinstance(error, click.NoSuchOption) and error.option_name in _GLOBAL:
        name = error.option_name
        return click.UsageError(
            f"{name} goes before the command: clew {name} … COMMAND", ctx=error.ctx
        )
    return error


def _abandon_stdout() -> None:
    """The reader has gone: what is still buffered must not fail again when Python exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
