"""Processes under test, forked from one that has imported everything and has started no thread."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.forking import FORKS
from tests.killing import child
from tests.killing.plans import CONTROL

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Generator
    from multiprocessing.process import BaseProcess

    from tests.killing.child import Job

ROOT = Path(__file__).parents[2]
#: Seconds that a process may take that waits for nothing.
LONGEST = 90.0


class Stuck(Exception):
    """A process did not end in time."""


def start(job: Job) -> BaseProcess:
    """Fork a process; it ends with ours."""
    return fork(child.main, job)


def fork(target: Callable[..., None], *args: object) -> BaseProcess:
    """Fork a process that runs something else; it ends with ours."""
    process = FORKS.Process(target=target, args=args, daemon=True)
    process.start()
    return process


def send(process: BaseProcess, number: signal.Signals) -> None:
    """Send a signal to a process that runs."""
    assert process.pid is not None
    os.kill(process.pid, number)


def ended(process: BaseProcess, *, within: float = LONGEST) -> int:
    """
    Wait for a process; its exit code, negative for a signal.

    :raises Stuck: after ``within`` seconds; it is killed then
    """
    process.join(within)
    code = process.exitcode
    if code is None:
        process.kill()
        process.join()
        raise Stuck(f"process {process.pid} did not end within {within:g} s")
    process.close()
    return code


@contextmanager
def provider(folder: Path) -> Generator[str]:
    """The fake provider as a process of its own; its base URL. Its log is in the folder."""
    command = [sys.executable, "-m", "clew.testing.provider"]
    options = ["--script", "tests.killing.plans:script", "--log", str(requests_in(folder))]
    process = subprocess.Popen(
        [*command, *options],
        cwd=ROOT,
        env={**os.environ, CONTROL: str(folder)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield f"{process.stdout.readline().strip()}/v1"
    finally:
        process.terminate()
        process.communicate()


def requests_in(folder: Path) -> Path:
    """The provider's log."""
    return folder / "requests.log"
