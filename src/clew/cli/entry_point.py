"""
Entry point: arguments in, exit code out, expected failures as one sentence.

Exit codes: 0 success, 1 failure, 2 wrong usage or settings, 3 a gateway already serves this
home, 130 interrupted by Ctrl-C.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn, cast

import click

from clew.cli.commands import root
from clew.errors import ClewError, GatewayRunning, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_GATEWAY_RUNNING: Final = 3
EXIT_INTERRUPTED: Final = 130
#: Seconds that threads have to end once the command has.
EXIT_SECONDS: Final = 5.0
#: Name of the thread that ends the process then.
EXIT_LIMIT: Final = "exit limit"
_STDERR: Final = 2
#: Failures that print one sentence; anything else is a bug and prints its traceback.
EXPECTED: Final = (ClewError, click.ClickException, click.Abort, KeyboardInterrupt, BrokenPipeError)
#: Options that must precede the command.
_GLOBAL_OPTIONS: Final = ("--home", "--set")


def main() -> NoReturn:
    """Run the command given on the command line, and exit."""
    # Lets the store's threads run beside a busy event loop: at the default of 5 ms a write
    # waits several times as long.
    sys.setswitchinterval(0.001)
    _ensure_standard_streams()
    _keep_descriptors()
    code = run_command(sys.argv[1:])
    _limit_exit(code)
    sys.exit(code)


def _limit_exit(code: int) -> None:
    """End the process also where threads of plugins and libraries would keep it running."""
    if threading.active_count() > 1:
        threading.Thread(target=_exit_later, args=(code,), name=EXIT_LIMIT, daemon=True).start()


def _exit_later(code: int) -> None:
    time.sleep(EXIT_SECONDS)
    names = [one.name for one in threading.enumerate() if not one.daemon]
    with suppress(OSError, ValueError):
        sys.stderr.write(f"clew: threads that do not end: {', '.join(names)}\n")
        sys.stderr.flush()
    os._exit(code)


def _ensure_standard_streams() -> None:
    """Open missing standard streams, so that no later file takes their descriptors."""
    opened = os.open(os.devnull, os.O_RDWR)
    while opened <= _STDERR:
        opened = os.open(os.devnull, os.O_RDWR)
    os.close(opened)
    # Python has none then, and click and argparse expect them. Missing stdin stays None.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123


def _keep_descriptors() -> None:
    """
    Leave what this process has inherited to it alone.

    The event loop of the gateway closes no descriptors in the processes that it starts: a command,
    a converter or a server of a plugin would hold a lock or a connection of whoever started us.
    """
    with suppress(OSError):
        for name in os.listdir("/dev/fd"):  # noqa: PTH208  (numbers)
            # The one that lists them is closed again.
            with suppress(OSError):
                os.set_inheritable(int(name), int(name) <= _STDERR)


def run_command(args: Sequence[str]) -> int:
    """Run a command, print its error on stderr, and return the exit code."""
    try:
        returned: object = root.main(args=list(args), prog_name="clew", standalone_mode=False)
        sys.stdout.flush()
    except EXPECTED as error:
        return _print_error(error)
    except BaseExceptionGroup as group:
        expected, rest = group.split(EXPECTED)
        if expected is None or rest is not None:
            raise
        return max(_print_error(error) for error in _iter_leaves(expected))
    # Only ``ctx.exit`` returns a number.
    return returned if isinstance(returned, int) else 0


def _iter_leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _iter_leaves(cast("BaseExceptionGroup[BaseException]", error))
        else:
            yield error


def _print_error(error: BaseException) -> int:
    """Print the error and return its exit code."""
    if os.environ.get("CLEW_DEBUG"):
        sys.excepthook(type(error), error, error.__traceback__)
    if isinstance(error, BrokenPipeError):
        _abandon_stdout()
        return EXIT_FAILED
    if isinstance(error, click.ClickException):
        _add_hint(error).show()
        return error.exit_code
    if isinstance(error, ClewError):
        click.echo(f"clew: {error}", err=True)
        return _exit_code(error)
    return EXIT_INTERRUPTED


def _exit_code(error: ClewError) -> int:
    match error:
        case UsageError():
            return EXIT_USAGE
        case GatewayRunning():
            return EXIT_GATEWAY_RUNNING
        case _:
            return EXIT_FAILED


def _add_hint(error: click.ClickException) -> click.ClickException:
    if isinstance(error, click.NoSuchOption) and error.option_name in _GLOBAL_OPTIONS:
        name = error.option_name
        return click.UsageError(
            f"{name} goes before the command: clew {name} … COMMAND", ctx=error.ctx
        )
    return error


def _abandon_stdout() -> None:
    """Discard buffered output after the reader closed the pipe, so that exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
