"""Commands in bubblewrap: their output, their end, and what stops them."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import uvloop

import clew
from clew.sandbox.bounded_output import format_bounded
from clew.sandbox.errors import SandboxError
from clew.sandbox.request import find_python, make_environment
from clew.sandbox.runner import describe_exit, run_command
from clew.sandbox.unconfined import UnconfinedHost
from tests.sandboxes import make_bubblewrap, make_request, needs_bubblewrap
from tests.waiting import wait_until

if TYPE_CHECKING:
    from clew.sandbox.runner import CommandResult

pytestmark = needs_bubblewrap


async def run_shell(folder: Path, command: str, **limits: float) -> CommandResult:
    request = make_request(folder, **limits)
    return await run_command(["sh", "-c", command], request, make_bubblewrap(folder))


async def run_python(folder: Path, code: str, **limits: float) -> CommandResult:
    request = make_request(folder, **limits)
    argv = [str(find_python().executable), "-I", "-c", code]
    return await run_command(argv, request, make_bubblewrap(folder))


async def test_a_command_has_its_workspace_and_nothing_else(tmp_path: Path) -> None:
    assert (await make_bubblewrap(tmp_path).probe()).works
    (tmp_path / "secret").write_text("secret")
    done = await run_shell(
        tmp_path, f"echo kept > file; pwd; ls -A; cat {tmp_path}/secret; ls {tmp_path}; echo $HOME"
    )
    workspace = str(tmp_path / "work" / "local")
    assert (tmp_path / "work" / "local" / "file").read_text() == "kept\n"
    first, listed, missing, *rest = done.output.splitlines()
    assert (first, listed, rest) == (workspace, "file", ["work", workspace])
    assert "No such file" in missing
    assert (done.exit_code, done.ending, done.notice) == (0, "exit code 0", None)


async def test_at_read_nothing_can_be_written(tmp_path: Path) -> None:
    request = replace(make_request(tmp_path), level="read")
    script = "for f in here /tmp/there /dev/shm/x /x; do echo > $f && echo WRITTEN; done; cat old"
    request.workspace.mkdir(parents=True)
    (request.workspace / "old").write_text("readable\n")
    done = await run_command(["sh", "-c", script], request, make_bubblewrap(tmp_path))
    assert "WRITTEN" not in done.output
    assert done.output.count("Read-only file system") == 4
    assert done.output.endswith("readable\n")


async def test_the_environment_has_nothing_of_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-gateway")
    request = replace(
        make_request(tmp_path), session="s-1", environment={"GITHUB_TOKEN": "by name"}
    )
    done = await run_command(["env"], request, make_bubblewrap(tmp_path))
    names = {line.split("=")[0] for line in done.output.splitlines()}
    session = {"CLEW_SESSION_ID", "HERMES_SESSION_ID"}
    assert names - {"PWD"} == {"PATH", "HOME", "LANG", "GITHUB_TOKEN", *session}
    assert make_environment(make_request(tmp_path)).keys() == {"PATH", "HOME", "LANG"}


@pytest.mark.parametrize(
    ("command", "ending"),
    [
        ("exit 3", "exit code 3"),
        ("kill -9 $$", "exit code 137 (killed by SIGKILL)"),
        ("exec no-such-program", "exit code 127"),
        # A hole takes no room, so the limit of the whole workspace is not reached first.
        (
            "exec dd if=/dev/zero of=big bs=1 count=1 seek=300000000",
            "exit code 153 (it wrote a larger file than",
        ),
    ],
)
async def test_the_end_of_a_process_is_described(tmp_path: Path, command: str, ending: str) -> None:
    done = await run_shell(tmp_path, f"exec sh -c {command!r}")
    assert done.ending.startswith(ending)
    assert describe_exit(250) == "exit code 250"


@pytest.mark.parametrize(
    ("command", "limits", "stopped"),
    [
        ("echo begun; sleep 100", {"seconds": 0.3}, "stopped after 0.3 seconds"),
        ("for i in $(seq 99); do sleep 99 & done; wait", {}, "it started more than 32 processes"),
        (
            "for i in 1 2 3 4 5; do head -c 30000000 /dev/zero > $i; done; sleep 100",
            {},
            "the workspace holds more than 64 MB",
        ),
    ],
)
async def test_a_command_without_end_is_stopped(
    tmp_path: Path, command: str, limits: dict[str, float], stopped: str
) -> None:
    done = await run_shell(tmp_path, command, **limits)
    assert stopped in done.ending


async def test_memory_counts_for_all_processes_together(tmp_path: Path) -> None:
    one = await run_python(tmp_path, "bytearray(300 * 2**20)")
    assert "MemoryError" in one.output
    code = "import os, time; os.fork(); os.fork(); x = b'x' * (100 * 2**20); time.sleep(100)"
    assert "it used more than 256 MB of memory" in (await run_python(tmp_path, code)).ending


async def test_threads_are_counted_as_well(tmp_path: Path) -> None:
    code = (
        "import threading, time\nthreading.stack_size(32_768)\n"
        "for _ in range(600): threading.Thread(target=time.sleep, args=(100,)).start()"
    )
    assert "it started more than 512 threads" in (await run_python(tmp_path, code)).ending


async def test_nothing_is_left_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    done = await run_shell(tmp_path, "sleep 4242 & setsid sleep 4242 & echo started")
    assert (done.output, done.exit_code) == ("started\n", 0)
    running = asyncio.create_task(run_shell(tmp_path, "touch begun; sleep 4242"))
    await wait_until((tmp_path / "work" / "local" / "begun").exists)
    running.cancel()
    await asyncio.sleep(0)
    running.cancel()  # the end of the command is waited for nevertheless
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not [*(tmp_path / "temporary").iterdir()]
    await wait_until(lambda: not processes_with("4242"), "the commands have ended")


def processes_with(word: str) -> list[str]:
    found: list[str] = []
    for place in Path("/proc").iterdir():
        try:
            line = (place / "cmdline").read_bytes().split(b"\0") if place.name.isdigit() else []
        except OSError:
            continue
        if word.encode() in line:
            found.append(place.name)
    return found


async def test_a_command_may_end_by_itself_when_its_time_is_up(tmp_path: Path) -> None:
    done = await run_shell(
        tmp_path, "trap 'echo ended; exit 5' TERM; echo begun; sleep 50 & wait", seconds=5
    )
    assert (done.output, done.exit_code) == ("begun\nended\n", 5)
    assert done.ending == "stopped after 5 seconds"


async def test_a_full_workspace_is_reported_and_can_be_emptied(tmp_path: Path) -> None:
    fill = "for i in 1 2 3; do head -c 30000000 /dev/zero > $i; done"
    done = await run_shell(tmp_path, fill)
    assert done.exit_code == 0 or done.stopped
    assert done.notice is not None
    assert "remove files" in done.notice
    # Longer than the pause between two looks at the disk.
    done = await run_shell(tmp_path, "sleep 0.7; rm 1 2; echo done")
    assert (done.output, done.ending, done.notice) == ("done\n", "exit code 0", None)


async def test_the_middle_of_a_long_output_is_left_out(tmp_path: Path) -> None:
    done = await run_shell(tmp_path, "echo first; seq 5000; printf '\\377last'", output=100)
    assert done.output.startswith("first\n1\n2\n")
    assert done.output.endswith("\n4999\n5000\nlast")
    first, left_out, last = re.split(r"\n\[… ([\d,]+) bytes left out …\]\n", done.output)
    kept = len(f"{first}{last}?")
    assert 80 < kept <= 100, "whole lines"
    assert int(left_out.replace(",", "")) == len("first\n?last") + 23_893 - kept


def test_output_is_cut_between_characters() -> None:
    sharp = "é".encode()
    text = format_bounded(sharp + sharp[:1], sharp[1:] + sharp * 2, 2000)
    assert text == "é\n[… 1,992 bytes left out …]\néé"


def test_a_line_is_shown_whole_or_not_at_all() -> None:
    output = b"one\nkey=0123456789abcdef\n" * 20
    text = format_bounded(output[:30], output[-30:], len(output))
    lines = {line for line in text.splitlines() if "left out" not in line}
    assert lines == {"one", "key=0123456789abcdef"}


async def test_words_are_passed_as_they_are(tmp_path: Path) -> None:
    words = ["a b", "$HOME", "'\"`\\", "-n", "--", "*", "\n", "\u00fc", "", "$(touch pwned)"]
    code = "import sys; print(ascii(sys.argv[1:]))"
    request = make_request(tmp_path)
    argv = [str(find_python().executable), "-I", "-c", code, *words]
    done = await run_command(argv, request, make_bubblewrap(tmp_path))
    assert done.output == f"{words!a}\n"
    with pytest.raises(SandboxError, match="NUL"):
        await run_command(["a\0b"], request, make_bubblewrap(tmp_path))


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user cannot write there anyway")
async def test_root_in_the_sandbox_cannot_change_the_kernel(tmp_path: Path) -> None:
    done = await run_shell(tmp_path, "echo 7 > /proc/sys/vm/swappiness && echo WRITTEN")
    assert "WRITTEN" not in done.output
    assert "Read-only file system" in done.output


def test_the_interpreter_of_commands_has_no_packages_of_ours() -> None:
    assert find_python().executable != Path(sys.executable)


def test_the_sandbox_needs_nothing_but_the_standard_library() -> None:
    """As an ordinary user runs it, who may not read the packages of root."""
    names = "runner, clew.sandbox.bubblewrap, clew.sandbox.network_proxy, clew.sandbox.escape_check"
    source = str(Path(clew.__file__).parent.parent)
    code = f"import sys; sys.path.insert(0, {source!r}); import clew.sandbox.{names}"
    subprocess.run([find_python().executable, "-I", "-S", "-c", code], check=True)


@pytest.mark.parametrize("sandbox", ["bubblewrap", "no sandbox"])
async def test_a_command_does_not_begin_once_its_gateway_has_gone(
    tmp_path: Path, sandbox: str
) -> None:
    chosen = UnconfinedHost() if sandbox == "no sandbox" else make_bubblewrap(tmp_path)
    request = make_request(tmp_path)
    await chosen.prepare(request)
    ours, theirs = os.pipe()
    os.close(ours)
    argv = chosen.wrap(["/bin/sh", "-c", "echo begun > begun"], request)
    process = await asyncio.create_subprocess_exec(*argv, stdout=theirs, stderr=theirs)
    os.close(theirs)
    assert await process.wait() != 0
    assert not (request.workspace / "begun").exists()


async def test_a_command_in_bubblewrap_does_not_begin_without_an_answer(tmp_path: Path) -> None:
    chosen, request = make_bubblewrap(tmp_path), make_request(tmp_path)
    await chosen.prepare(request)
    argv = chosen.wrap(["/bin/sh", "-c", "echo begun > begun"], request)
    # Its output is read, as by a gateway that dies in the next moment.
    nothing = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*argv, stdin=nothing, stdout=nothing)
    assert await process.wait() != 0
    assert not (request.workspace / "begun").exists()


def test_a_command_closes_each_descriptor_once_in_the_loop_of_the_gateway(tmp_path: Path) -> None:
    """
    Transports of uvloop close the file that they were given twice.

    The second time, the number may belong to a file that a thread has opened in between.
    """
    source = Path(clew.__file__).parent
    given = [path for path in source.rglob("*.py") if "connect_read_pipe(" in path.read_text()]
    assert given == []

    def count_descriptors() -> int:
        return len([*Path("/proc/self/fd").iterdir()])

    async def run() -> tuple[int, CommandResult, int]:
        await run_shell(tmp_path, "true")
        before = count_descriptors()
        done = await run_shell(tmp_path, "seq 100000; exec >&- 2>&-; sleep 0.1; exit 3")
        return before, done, count_descriptors()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        before, done, after = runner.run(run())
    assert before == after
    assert done.output.startswith("1\n2\n")
    assert done.output.endswith("\n100000\n")
    assert done.exit_code == 3


#: Each takes more than it may, in a way that a look at names or at own memory does not see.
HIDDEN_FILES = (
    "open(f'.clew-new-{n:016x}', 'wb').write(b'x' * 10**6)",
    "f = open('u', 'wb', 0); k.append(f); os.unlink('u'); f.write(b'x' * 10**6)",
    "with open('m', 'w+b', 0) as f: os.unlink('m'); f.write(b'x' * 10**6); map_file(f.fileno())",
)
#: A mapping of Python keeps the file open.
HIDING = """
import ctypes, mmap, os, time
k = []
def map_file(number):
    ctypes.CDLL(None).mmap(None, ctypes.c_size_t(10**6), 1, 1, number, ctypes.c_long(0))
"""
HIDDEN_MEMORY = (
    "k.append(mmap.mmap(-1, 10**7)); k[-1].write(b'x' * 10**7)",
    "os.write(os.memfd_create('f'), b'x' * 10**7)",
)


async def test_what_has_no_name_is_counted_as_well(tmp_path: Path) -> None:
    async def take(number: int, code: str) -> CommandResult:
        script = f"for n in range(1200):\n    {code}\n    time.sleep(0.1)"
        return await run_python(
            tmp_path / str(number),
            f"{HIDING}{script}",
            disk=2**24,
            memory=2**26,
        )

    ended = await asyncio.gather(*map(take, range(9), (*HIDDEN_FILES, *HIDDEN_MEMORY)))
    for done in ended[: len(HIDDEN_FILES)]:
        assert "the workspace holds more" in (done.stopped or ""), done
    for done in ended[len(HIDDEN_FILES) :]:
        assert "of memory" in (done.stopped or ""), done


async def test_a_workspace_that_cannot_be_measured_may_not_grow(tmp_path: Path) -> None:
    deep = "import os\nfor n in range(20): os.mkdir('d' * 250); os.chdir('d' * 250)"
    made = await run_python(tmp_path, deep, disk=2**24)
    assert made.notice is not None
    assert "or cannot be measured" in made.notice
    assert len(made.notice) < 600
    grown = await run_shell(
        tmp_path, "for n in $(seq 60); do head -c 4M /dev/zero > $n; sleep 0.1; done", disk=2**24
    )
    assert grown.stopped is not None
    assert (await run_shell(tmp_path, "rm -rf ./*; ls", disk=2**24)).notice is None
