"""Programs of others that hold conversations in a process of their own, and may be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from clew.testing.provider.replies import Text
from tests.foreign.scripted_model import USAGE, follow_plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clew.testing.provider.replies import Reply
    from clew.testing.provider.request import ProviderRequest

#: Seconds after which a step that hangs is killed.
_HANGING = 4.0
_LIMIT = 300.0

CALLS = (
    '<<[[["{tool}", {{"command": "echo {number}"}}], ["{tool}", {{"command": "false"}}]], '
    '"Both ran."]>>'
)
HANGS = '<<[[["{tool}", {{"command": "echo {number}"}}]], {{"hang": true}}]>>'


def obey(request: ProviderRequest) -> Reply:
    """Follow the plan of the newest message, if it has one; else say that it is done."""
    if request.tools and "<<" not in request.last_user_text:
        return Text(f"Done: {request.last_user_text[-60:]}", usage=USAGE)
    return follow_plan(request)


def run_turn(
    command: Sequence[str], *, environment: Mapping[str, str], folder: str, seconds: float
) -> None:
    """Run one turn of a program; kill it, with what it has started, if it takes longer."""
    with subprocess.Popen(
        command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            sys.stdout.write(f"killed: {command[-1]}\n")


def drive(
    python: str,
    driver: str,
    steps: Sequence[Sequence[str]],
    environment: Mapping[str, str],
    *,
    kill_in_last: bool = False,
) -> None:
    """Run a driver of this folder; with ``kill_in_last``, kill it (SIGKILL) in its last step."""
    progress = Path(environment["HOME"]) / "progress"
    progress.unlink(missing_ok=True)
    command = [python, str(Path(__file__).with_name(driver)), json.dumps(steps), str(progress)]
    with subprocess.Popen(
        command,
        env=environment,
        cwd=environment["HOME"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=sys.stderr if "--loud" in sys.argv else subprocess.DEVNULL,
    ) as process:
        try:
            if kill_in_last:
                _wait_for_step(progress, len(steps) - 1, process)
                time.sleep(_HANGING)
                process.kill()
            process.wait(_LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
    reached = progress.read_text() if progress.exists() else "nothing"
    expected = str(len(steps) - 1) if kill_in_last else "done"
    if reached != expected:
        sys.stdout.write(f"{driver} ended at {reached}: {steps}\n")


def _wait_for_step(progress: Path, number: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _LIMIT
    while time.monotonic() < end and process.poll() is None:
        if progress.exists() and progress.read_text() == str(number):
            return
        time.sleep(0.1)
