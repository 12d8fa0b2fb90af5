"""The processes of a supervised command: started, and ended with all that they started."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from clew.sandbox.process_tree import signal_descendants

if TYPE_CHECKING:
    from clew.sandbox.supervisor.order import SupervisorOrder

#: The priority of commands below that of the gateway.
_NICENESS = 10
#: Makes the kernel end a command before its supervisor, if there is no memory left.
_FIRST_TO_GO = b"500"
#: Seconds after which a signal that should have ended everything is followed by others.
_PATIENCE = 2.0
#: Number of attempts to kill processes that others start again.
_KILL_ROUNDS = 20
#: Seconds for the command that ends what is elsewhere.
_ENDING_TIMEOUT = 30
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
#: Exit code of what cannot be run.
_FAILED = 126


def adopt_orphans() -> None:
    """Become the parent of whatever a command leaves behind; only Linux can do this."""
    _control(_PR_SET_CHILD_SUBREAPER, 1)


def _control(option: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415  (only here)

        with suppress(OSError):
            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


class CommandProcesses:
    """The first process of a command, with its pipes."""

    def __init__(self, order: SupervisorOrder) -> None:
        """
        Start the command.

        :raises OSError: if it cannot be started
        """
        self._order = order
        self.output, theirs_out = os.pipe()
        theirs_in, self.input = os.pipe()
        told, telling = os.pipe()
        supervisor = os.getpid()
        self.pid = os.fork()
        if not self.pid:
            # Kept over exec: until a launcher listens, it ends with its supervisor as well.
            _control(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != supervisor:
                os._exit(_FAILED)
            self._become_command(theirs_in, theirs_out, telling)
        for each in (theirs_out, theirs_in, telling):
            os.close(each)
        error = os.read(told, 1000).decode()
        os.close(told)
        os.set_blocking(self.output, False)
        #: As ``waitpid`` has it; ``None`` while it runs.
        self.status: int | None = None
        if error:
            raise OSError(error)

    def _become_command(self, stdin: int, stdout: int, telling: int) -> None:
        try:
            os.setsid()
            for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.dup2(stdin, 0)
            os.dup2(stdout, 1)
            os.dup2(stdout, 2)
            os.chdir("/")
            os.nice(_NICENESS)
            _offer_to_kernel()
            os.execvpe(self._order.argv[0], self._order.argv, self._order.environment)
        except OSError as error:
            os.write(telling, f"{error.strerror or error}".encode())
        os._exit(_FAILED)

    def start_relay(self) -> None:
        """Give the command its way to the proxy, in a child: another program would start slowly."""
        parent = os.getpid()
        if self._order.proxy is None or os.fork():
            return
        try:
            from clew.sandbox.supervisor.net_relay import run_relay  # noqa: PLC0415  (only there)

            run_relay(self.pid, self._order.proxy, parent)
        finally:
            os._exit(_FAILED)

    def reap_ended(self) -> None:
        """Take the status of every process that has ended."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not process:
                return
            if process == self.pid:
                self.status = status

    def ask_to_end(self) -> None:
        """Let the command end by itself, where it listens to signals."""
        if self._order.end_signal is None:
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGTERM)
        signal_descendants(self.pid, signal.SIGTERM)

    def kill_all(self) -> None:
        """Kill everything that the command has started, and wait for its end."""
        if self._order.end_signal is not None and self.status is None:
            with suppress(OSError):
                os.kill(self.pid, self._order.end_signal)
            self._wait_for_end()
        if self._order.end_signal is None or self.status is None:
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
        # Without the first process, what it had started descends from this one.
        for _ in range(_KILL_ROUNDS):
            if not signal_descendants(os.getpid(), signal.SIGKILL):
                break
            self.reap_ended()
        self._wait_for_end()

    def _wait_for_end(self) -> None:
        end = time.monotonic() + _PATIENCE
        pause = 0.0005
        self.reap_ended()
        while self.status is None and time.monotonic() < end:
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
            self.reap_ended()

    def end_elsewhere(self) -> None:
        """End what is not a process of this machine."""
        if self._order.ending is None:
            return
        process = os.fork()
        if not process:
            try:
                nothing = os.open(os.devnull, os.O_RDWR)
                for number in (0, 1, 2):
                    os.dup2(nothing, number)
                signal.alarm(_ENDING_TIMEOUT)
                os.execvpe(self._order.ending[0], self._order.ending, self._order.environment)
            finally:
                os._exit(_FAILED)
        os.waitpid(process, 0)


def _offer_to_kernel() -> None:
    with suppress(OSError):
        file = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(file, _FIRST_TO_GO)
        os.close(file)
