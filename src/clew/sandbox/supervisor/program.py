"""The program of a supervisor: one command, from its start to the file that tells its end."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import sys
import time
from contextlib import suppress

from clew.core.byte_size import format_size
from clew.sandbox.supervisor.command import CommandProcesses, adopt_orphans
from clew.sandbox.supervisor.disk_watch import DiskWatch
from clew.sandbox.supervisor.input_lines import InputLines
from clew.sandbox.supervisor.look_pace import PERIOD, LookPace
from clew.sandbox.supervisor.memory_watch import MemoryWatch
from clew.sandbox.supervisor.order import (
    DESCRIPTORS,
    EXIT,
    INPUT,
    LOCK,
    STARTED,
    STARTER,
    STOP,
    CommandExit,
    SupervisorOrder,
)
from clew.sandbox.supervisor.output_files import OutputFiles
from clew.sandbox.usage_limits import find_excess

#: Seconds after which a thread lets another one run.
_SWITCH = 0.0001
#: Seconds between the request to end and the kill.
_GRACE = 5.0
#: Seconds for output that a child left behind may still write.
_DRAIN = 0.2
#: A command that writes more than this is stopped.
_FLOOD = 4 * 1024 * 1024 * 1024
_CHUNK = 64 * 1024
#: The first byte of the output of each command, which nobody is shown: it has begun.
_FIRST_BYTE = b"\0"
#: Attempts to get the lock, and seconds between them: others look whether it is held.
_LOCK_ATTEMPTS, _LOCK_PAUSE = 50, 0.01
#: Room for the end of the command, taken before it starts: the disk may be full then.
_EXIT_ROOM = 4096


def run_program(folder: str) -> None:
    """
    Supervise the command of the order on standard input, unless it was started before.

    This process ends as soon as the command has begun; its child goes on in a session of its own.
    """
    # The loop of a gateway leaves some of its own open here; the command must not have them either.
    os.closerange(3, DESCRIPTORS)
    os.umask(0o077)
    os.chdir(folder)
    # Before the order has come as a whole: its sender holds the other end until then.
    starter = _open_starter()
    order = SupervisorOrder(**json.load(sys.stdin))
    if _has_gone(starter) or not _take_lock() or os.path.exists(STARTED):
        return
    if not os.path.exists(INPUT):
        os.mkfifo(INPUT)
    told, telling = os.pipe()
    if os.fork():
        os.close(telling)
        error = os.read(told, 1000).decode()
        sys.exit(error or 0)
    os.setsid()
    _detach_streams()
    # On the disk before anything runs: it must not run again after a loss of power.
    _write_file(STARTED, b"", os.O_EXCL)
    _sync_folder()
    _Supervisor(order, telling, starter).run()
    if _has_gone(starter):
        _remove_files()
    os._exit(0)


def _open_starter() -> int | None:
    """Open what whoever waits for the command holds open; ``None`` if it outlives everybody."""
    try:
        return os.open(STARTER, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None


def _has_gone(starter: int | None) -> bool:
    """Return whether nobody waits for the command any more."""
    if starter is None:
        return False
    try:
        return not os.read(starter, 1)
    except BlockingIOError:
        return False


def _remove_files() -> None:
    """Remove the folder, which nobody reads."""
    for name in os.listdir("."):
        with suppress(OSError):
            os.unlink(name)
    with suppress(OSError):
        os.rmdir(os.getcwd())


def _take_lock() -> bool:
    """Lock this folder for the life of this process and its child."""
    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    for _ in range(_LOCK_ATTEMPTS):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if os.path.exists(STARTED):
                return False
            time.sleep(_LOCK_PAUSE)
        else:
            return True
    return False


def _detach_streams() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.close(nothing)


class _Supervisor:
    """The supervision of one command."""

    def __init__(self, order: SupervisorOrder, telling: int, starter: int | None) -> None:
        self._order, self._telling, self._starter = order, telling, starter
        self._started, self._begun = time.time(), time.monotonic()
        self._by: str | None = None
        self._why: str | None = None
        #: When the command is killed that was asked to end.
        self._kill_at: float | None = None
        self._output = OutputFiles(order.output)
        self._is_first = True
        self._pace = LookPace((0, 0))
        _write_file(f"{EXIT}.new", b" " * _EXIT_ROOM)

    def run(self) -> None:
        """Start the command, and stay until everything of it has ended."""
        adopt_orphans()
        self._wakes, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._wakes, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, _ignore)
        signal.signal(signal.SIGTERM, self._note_end_of_machine)
        if (reason := _read_reason()) is not None:
            self._by, self._why = "person", reason
            self._write_exit(128 + signal.SIGTERM, None, None)
            return
        self._memory = MemoryWatch(self._order.memory)
        self._disk = DiskWatch(self._order.workspace, self._order.disk)
        self._oom_kills = _count_oom_kills()
        try:
            self._command = CommandProcesses(self._order)
        except OSError as error:
            self._by, self._why = "error", f"the command cannot be started: {error}"
            os.write(self._telling, self._why.encode())
            self._write_exit(127, None, None)
            return
        # While there is no other thread.
        self._command.start_relay()
        _write_file(STARTED, f"{os.getpid()} {self._command.pid}\n".encode())
        self._input = InputLines(self._command.input)
        os.close(self._telling)
        # Threads that measure must not keep the one that counts waiting.
        sys.setswitchinterval(_SWITCH)
        self._disk.start(self._command.pid, self._wake)
        self._memory.start(self._command.pid, self._wake)
        self._follow()
        self._end()

    def _note_end_of_machine(self, *_: object) -> None:
        self._stop("person", "stopped: its supervisor was asked to end")

    def _stop(self, by: str, why: str, *, grace: float = _GRACE) -> None:
        """Have the command end, after some time for it to do so by itself."""
        if self._kill_at is None or not grace:
            self._by, self._why = self._by or by, self._why or why
            if grace:
                self._command.ask_to_end()
            self._kill_at = time.monotonic() + grace

    def _follow(self) -> None:
        """Pass on output and input until the first process has ended."""
        poller = select.poll()
        poller.register(self._command.output, select.POLLIN)
        poller.register(self._wakes, select.POLLIN)
        poller.register(self._input.source, select.POLLIN)
        if self._starter is not None:
            poller.register(self._starter, select.POLLIN)
        next_look = self._begun + PERIOD
        while self._command.status is None:
            self._watch_pipes(poller)
            events = poller.poll(max(0.0, self._find_due(next_look) - time.monotonic()) * 1000)
            for descriptor, event in events:
                self._handle(poller, descriptor, event)
            self._command.reap_ended()
            now = time.monotonic()
            if now >= self._begun + self._order.seconds:
                self._stop("time", f"stopped after {self._order.seconds:g} seconds")
            if self._kill_at is not None and now >= self._kill_at:
                return
            if now >= next_look:
                next_look = now + self._look()

    def _find_due(self, next_look: float) -> float:
        end = self._begun + self._order.seconds if self._kill_at is None else self._kill_at
        return min(next_look, end)

    def _watch_pipes(self, poller: select.poll) -> None:
        """Listen for input while it can be taken, and for room to write it while it waits."""
        poller.modify(self._input.source, 0 if self._input.is_full else select.POLLIN)
        if self._input.pipe is not None and self._input.is_open:
            poller.register(self._input.pipe, select.POLLOUT if self._input.waits else 0)

    def _handle(self, poller: select.poll, descriptor: int, event: int) -> None:
        if descriptor == self._command.output:
            if not self._read_output():
                poller.unregister(descriptor)
        elif descriptor == self._wakes:
            _empty(self._wakes)
            self._check_reasons()
        elif descriptor == self._input.source:
            self._input.read_lines()
            self._check_reasons()
        elif descriptor == self._starter:
            poller.unregister(descriptor)
            self._stop("person", "stopped: nobody waits for it any more", grace=0.0)
        else:
            if event & select.POLLOUT:
                self._input.write_queue()
            else:
                self._input.close_pipe()
            if self._input.pipe is None:
                poller.unregister(descriptor)

    def _read_output(self) -> bool:
        """Store what there is; return whether more may come."""
        try:
            data = os.read(self._command.output, _CHUNK)
        except BlockingIOError:
            return True
        if not data:
            return False
        if self._is_first:
            self._is_first = False
            data = data.removeprefix(_FIRST_BYTE)
            self._input.answer(takes_input=self._order.takes_input)
        self._output.add_output(data)
        if self._output.size > _FLOOD:
            size = format_size(_FLOOD)
            self._stop("limit", f"stopped: it wrote more than {size} of output", grace=0.0)
        return True

    def _check_reasons(self) -> None:
        """Stop the command for whatever somebody else has found."""
        if (reason := _read_reason()) is not None:
            self._stop("person", reason)
        if self._disk.reason is not None:
            self._stop("limit", self._disk.reason, grace=0.0)
        if self._memory.reason is not None:
            self._stop("memory", self._memory.reason, grace=0.0)

    def _look(self) -> float:
        """Look at what the command uses; return the seconds until the next look."""
        order = self._order
        self._check_reasons()
        excess, count = find_excess(self._command.pid, processes=order.processes)
        if excess is not None:
            self._stop("memory" if "memory" in excess else "limit", excess, grace=0.0)
        return self._pace.note(count)

    def _end(self) -> None:
        """Leave nothing behind, and tell the end."""
        self._command.kill_all()
        self._command.end_elsewhere()
        self._drain()
        # Before the end is told: nobody who knows of it may believe that his input arrives.
        self._input.close_source()
        status = self._command.status
        ended = -signal.SIGKILL if status is None else os.waitstatus_to_exitcode(status)
        code = ended if ended >= 0 else 128 - ended
        number = code - 128 if code > 128 and code - 128 in signal.valid_signals() else None
        self._name_the_killer(number)
        self._write_exit(code, number, self._disk.find_notice())

    def _drain(self) -> None:
        """Read what is still in the pipe."""
        poller = select.poll()
        poller.register(self._command.output, select.POLLIN)
        end = time.monotonic() + _DRAIN
        while poller.poll(max(0.0, end - time.monotonic()) * 1000):
            if not self._read_output():
                return

    def _name_the_killer(self, number: int | None) -> None:
        """Say that it was the kernel, where memory ran out."""
        if self._by is None and number == signal.SIGKILL and _count_oom_kills() > self._oom_kills:
            self._by = "memory"
            self._why = "killed by the kernel: the machine had no memory left"

    def _write_exit(self, code: int, number: int | None, notice: str | None) -> None:
        if not self._output.is_whole:
            notice = notice or "a part of its output could not be stored: the disk is full"
        ended = CommandExit(
            code=code,
            signal=number,
            size=self._output.size,
            started=int(self._started * 1000),
            ended=int(time.time() * 1000),
            by=self._by,
            why=self._why,
            notice=notice,
        )
        _write_file(f"{EXIT}.new", json.dumps(ended._asdict()).encode().ljust(_EXIT_ROOM))
        os.rename(f"{EXIT}.new", EXIT)


def _ignore(*_: object) -> None:
    """Do nothing: the signal has written to the pipe that wakes the supervisor."""


def _empty(descriptor: int) -> None:
    try:
        while os.read(descriptor, 1024):
            pass
    except BlockingIOError:
        pass


def _read_reason() -> str | None:
    """Return why the command is to be stopped, once somebody has asked for it."""
    try:
        with open(STOP, encoding="utf-8") as file:
            return file.read() or "stopped"
    except OSError:
        return None


def _count_oom_kills() -> int:
    """Return how often the kernel has ended a process for want of memory."""
    try:
        with open("/proc/vmstat", encoding="ascii") as file:
            found = [line.split()[1] for line in file if line.startswith("oom_kill ")]
        return int(found[0]) if found else 0
    except OSError:
        return 0


def _write_file(name: str, content: bytes, flags: int = 0) -> None:
    """Write a file in its place, without giving back its room on the disk."""
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | flags, 0o600)
    try:
        os.write(file, content)
        os.fsync(file)
    finally:
        os.close(file)


def _sync_folder() -> None:
    folder = os.open(".", os.O_RDONLY | os.O_CLOEXEC)
    os.fsync(folder)
    os.close(folder)
