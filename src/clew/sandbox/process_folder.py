"""The folder of a supervised process, as a gateway uses it: start, look, read, ask to stop."""

from __future__ import annotations

import asyncio
import enum
import json
import os
import secrets
import shutil
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from clew.background import kill_and_wait, start_child
from clew.file_locks import try_lock_descriptor
from clew.sandbox.bounded_output import format_bounded
from clew.sandbox.errors import SandboxError
from clew.sandbox.protocol import run_program
from clew.sandbox.request import find_python
from clew.sandbox.supervisor import start as program
from clew.sandbox.supervisor.order import (
    EXIT,
    INPUT,
    LOCK,
    OUTPUT_PREFIX,
    STARTED,
    STARTER,
    STOP,
    CommandExit,
    SupervisorOrder,
    parse_exit,
)
from clew.sandbox.supervisor.output_files import split_limit

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

    from clew.sandbox.protocol import Sandbox
    from clew.sandbox.request import SandboxRequest

#: A command that ends what is not a process of this machine.
_ENDING: Final = "ending"
#: Bytes of one line of input: the kernel writes them in one piece.
_LONGEST_LINE: Final = os.pathconf("/", "PC_PIPE_BUF") if hasattr(os, "pathconf") else 512
#: Characters of input in one line; each takes at most twelve bytes.
_INPUT_PIECE: Final = _LONGEST_LINE // 16
#: Bytes of a character in UTF-8.
_LONGEST_CHARACTER: Final = 4
#: Attempts to read output whose files are replaced meanwhile.
_ATTEMPTS: Final = 20
#: Seconds until a supervisor must have started its command.
_START_TIMEOUT: Final = 60.0


class Life(enum.Enum):
    """Life of a supervised process."""

    NEW = "new"  #: no supervisor has begun
    ALIVE = "alive"  #: its supervisor holds the lock
    ENDED = "ended"  #: its supervisor has told the end
    GONE = "gone"  #: its supervisor is gone and has told nothing


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputPart:
    """A part of the output, from a position on."""

    start: int
    data: bytes
    #: Bytes of the whole output so far.
    size: int
    #: What was kept right before the part, and right after it.
    before: bytes = b""
    after: bytes = b""


def make_order(argv: Sequence[str], request: SandboxRequest, sandbox: Sandbox) -> SupervisorOrder:
    """Return the order for a command in a sandbox, which must have been prepared."""
    wrapped = list(sandbox.wrap(argv, request))
    ending, limits = sandbox.make_ending(wrapped), request.limits
    return SupervisorOrder(
        argv=wrapped,
        environment=sandbox.make_environment(request),
        workspace=str(request.workspace),
        seconds=limits.seconds,
        memory=limits.memory,
        processes=limits.processes,
        output=limits.output,
        disk=limits.disk,
        end_signal=None if sandbox.end_signal is None else int(sandbox.end_signal),
        ending=None if ending is None else list(ending),
        proxy=None if request.proxy is None else str(request.proxy),
        takes_input=request.takes_input,
    )


def _cut_part(found: bytes, start: int, length: int, margin: int) -> OutputPart:
    """Return the part of some bytes that begins at a position among them."""
    end = min(start + length, len(found))
    if margin:
        start, end = _find_character(found, start), _find_character(found, end)
    return OutputPart(
        start=start,
        data=found[start:end],
        size=0,
        before=found[max(0, start - margin) : start],
        after=found[end : end + margin],
    )


def _find_character(text: bytes, position: int) -> int:
    """Return the position of the first character in UTF-8 from another position on."""
    for later in range(position, min(position + _LONGEST_CHARACTER, len(text))):
        if text[later] & 0xC0 != 0x80:
            return later
    return position


class ProcessFolder:
    """The folder of one supervised process."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def tie_to_this_process(self) -> Generator[None]:
        """Have the command that is started in the block end with it, and with this process."""
        os.mkfifo(self.path / STARTER, 0o600)
        pipe = os.open(self.path / STARTER, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            yield
        finally:
            os.close(pipe)

    async def start(self, order: SupervisorOrder) -> None:
        """
        Start the command under a supervisor, unless that was done before.

        Cancelling leaves it running, or never to be started.

        :raises SandboxError: if it cannot be started
        """
        if any("\0" in word for word in order.argv):
            raise SandboxError("a command cannot hold the character NUL")
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if order.ending is not None:
            (self.path / _ENDING).write_text(json.dumps(order.ending))
        python = str(find_python().executable)
        process = await start_child(
            *(python, "-I", "-S", program.__file__, str(self.path)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            cwd="/",
            env={},
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(_START_TIMEOUT):
                given = json.dumps(order._asdict()).encode()
                _, error = await process.communicate(given)
        except TimeoutError:
            await kill_and_wait(process)
            raise SandboxError("its supervisor did not start in time") from None
        if process.returncode:
            raise SandboxError(error.decode(errors="replace").strip() or "its supervisor ended")

    def look(self) -> Life:
        """Return whether the process lives; the process with its number does not matter."""
        # Not before it holds the lock: whoever tries it takes it for a moment.
        if not (self.path / STARTED).exists():
            return Life.NEW
        alive = self._is_locked()
        if (self.path / EXIT).exists():
            return Life.ENDED
        return Life.ALIVE if alive else Life.GONE

    def _is_locked(self) -> bool:
        try:
            lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            return not try_lock_descriptor(lock, shared=True)
        finally:
            os.close(lock)

    def read_exit(self) -> CommandExit | None:
        """Return the end of the command, if its supervisor has told it."""
        try:
            return parse_exit(json.loads((self.path / EXIT).read_text()))
        except (FileNotFoundError, NotADirectoryError):
            return None

    async def wait(self, *, seconds: float) -> Life:
        """Return once the process does not live any more, or after some time."""
        pause, end = 0.002, asyncio.get_running_loop().time() + seconds
        while (found := self.look()) is Life.ALIVE:
            left = end - asyncio.get_running_loop().time()
            if left <= 0:
                break
            await asyncio.sleep(min(pause, left))
            pause = min(1.5 * pause, 0.1)
        return found

    def ask_to_stop(self, reason: str) -> None:
        """
        Have the process end: at once, or when it starts.

        The first reason counts. Its supervisor asks it to end, and kills it 5 seconds later.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (self.path / STOP).exists():
            # There as a whole or not at all, and never replaced.
            made = self.path / f"{STOP}.{secrets.token_hex(4)}"
            made.write_text(reason, encoding="utf-8")
            with suppress(FileExistsError):
                os.link(made, self.path / STOP)
            made.unlink()
        self._write_lines(b"\n")

    def send_input(self, key: str, text: str, *, end: bool = False) -> bool:
        """
        Give the command input; ``False`` if it does not read it, or lives no more.

        The same key gives it once. ``end`` closes its input.
        """
        pieces = [text[n : n + _INPUT_PIECE] for n in range(0, len(text), _INPUT_PIECE)] or [""]
        last = len(pieces) - 1
        return self._write_lines(
            *(
                json.dumps({"key": f"{key} {n}", "text": one, "end": end and n == last}).encode()
                + b"\n"
                for n, one in enumerate(pieces)
            )
        )

    def _write_lines(self, *lines: bytes) -> bool:
        try:
            pipe = os.open(self.path / INPUT, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:  # nobody reads
            return False
        try:
            return all(os.write(pipe, line) == len(line) for line in lines)
        except OSError:
            return False
        finally:
            os.close(pipe)

    def read_output(self, limit: int) -> str:
        """Return the first half of what ``limit`` keeps of the output and the last, as text."""
        head_size, _ = split_limit(limit)
        for _ in range(_ATTEMPTS):
            with suppress(FileNotFoundError):
                head = self._read_part(0)[:head_size]
                size = self.measure_output()
                tail_start = max(len(head), size - (limit - head_size))
                return format_bounded(head, self._read_from(tail_start), size)
        return ""

    def read_range(self, start: int | None, length: int, *, margin: int = 0) -> OutputPart:
        """
        Return bytes from a position on, or the last ones; what was not kept is left out.

        With a ``margin``, the part begins and ends between characters, and is told with so many
        bytes on both of its sides.
        """
        for _ in range(_ATTEMPTS):
            with suppress(FileNotFoundError):
                size = self.measure_output()
                first = max(0, size - length) if start is None else min(max(start, 0), size)
                first = self._find_kept(first)
                outer = self._find_kept(max(0, first - margin))
                found = self._read_from(outer)
                if len(found) < first - outer:  # a piece in between was not kept
                    outer, found = first, self._read_from(first)
                part = _cut_part(found, first - outer, length, margin)
                return replace(part, start=outer + part.start, size=size)
        return OutputPart(start=0, data=b"", size=0)

    def _find_kept(self, position: int) -> int:
        """Return the first position from another one on that was kept."""
        for start, size in self._list_parts():
            if position < start + size:
                return max(position, start)
        return position

    def _read_from(self, position: int) -> bytes:
        found = b""
        for start, size in self._list_parts():
            if start + size > position:
                if found and start != position + len(found):
                    return found
                part = self._read_part(start)
                found += part[max(0, position - start) :] if start <= position else part
        return found

    def _read_part(self, start: int) -> bytes:
        return (self.path / f"{OUTPUT_PREFIX}{start}").read_bytes()

    def _list_parts(self) -> list[tuple[int, int]]:
        """Return where the files of the output begin, and their sizes."""
        return sorted(self._iter_parts())

    def _iter_parts(self) -> Iterator[tuple[int, int]]:
        for each in self.path.iterdir():
            if each.name.startswith(OUTPUT_PREFIX):
                yield int(each.name.removeprefix(OUTPUT_PREFIX)), each.stat().st_size

    def measure_output(self) -> int:
        """Return how many bytes the command has written."""
        with suppress(FileNotFoundError):
            return max((start + size for start, size in self._iter_parts()), default=0)
        return 0

    async def end_elsewhere(self) -> None:
        """End what is not a process of this machine, after its supervisor was killed."""
        with suppress(FileNotFoundError):
            await run_program(json.loads((self.path / _ENDING).read_text()))

    def remove(self) -> None:
        """Remove the folder, with the output."""
        shutil.rmtree(self.path, ignore_errors=True)
