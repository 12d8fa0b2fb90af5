"""Supervised commands: they outlive whoever started them, and each end has its own words."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import uvloop

from clew.sandbox.container import ContainerSandbox
from clew.sandbox.errors import SandboxError
from clew.sandbox.landlock import LandlockSandbox
from clew.sandbox.process_folder import Life, ProcessFolder, make_order
from clew.sandbox.request import find_python
from clew.sandbox.unconfined import UnconfinedHost
from tests.features.killed_commands import find_processes
from tests.sandboxes import (
    FAKE_DOCKER,
    make_bubblewrap,
    make_request,
    needs_bubblewrap,
    needs_landlock,
)
from tests.waiting import block_until, wait_until

if TYPE_CHECKING:
    from clew.sandbox.protocol import Sandbox
    from clew.sandbox.supervisor.order import CommandExit, SupervisorOrder

LEVELS = (
    pytest.param("bubblewrap", marks=needs_bubblewrap),
    pytest.param("landlock", marks=needs_landlock),
    "host",
)


def make_sandbox(name: str, folder: Path) -> Sandbox:
    match name:
        case "bubblewrap":
            return make_bubblewrap(folder)
        case "landlock":
            return LandlockSandbox()
        case _:
            return UnconfinedHost()


async def prepare(
    folder: Path, command: str, sandbox: str = "bubblewrap", **limits: float
) -> tuple[ProcessFolder, SupervisorOrder]:
    chosen, request = make_sandbox(sandbox, folder), make_request(folder, **limits)
    await chosen.prepare(request)
    order = make_order(["sh", "-c", command], request, chosen)
    return ProcessFolder(folder / "processes" / "prc_1"), order


async def start(
    folder: Path, command: str, sandbox: str = "bubblewrap", **limits: float
) -> ProcessFolder:
    place, order = await prepare(folder, command, sandbox, **limits)
    await place.start(order)
    return place


async def end_of(place: ProcessFolder) -> CommandExit:
    assert await place.wait(seconds=60) is Life.ENDED
    found = place.read_exit()
    assert found is not None
    return found


def supervisor_of(place: ProcessFolder) -> int:
    return int((place.path / "pid").read_text().split()[0])


def read_memory(process: int) -> int:
    """The memory of a process, in KB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    [found] = [line.split()[1] for line in lines if line.startswith("VmRSS")]
    return int(found)


@pytest.mark.parametrize("sandbox", LEVELS)
async def test_each_end_has_its_own_words(tmp_path: Path, sandbox: str) -> None:
    code = "import os, time; os.fork(); os.fork(); x = b'x' * 50_000_000; time.sleep(60)"
    eat = f'exec {find_python().executable} -Sc "{code}"'
    ends: dict[str, tuple[str, dict[str, float]]] = {
        "own": ("echo said; exit 3", {}),
        "killed": ("kill -9 $$", {}),
        "memory": (eat, {"memory": 2**27}),
        "person": ("sleep 60", {}),
        "time": ("sleep 60", {"seconds": 0.3}),
    }
    places = {
        name: await start(tmp_path / name, command, sandbox, **limits)
        for name, (command, limits) in ends.items()
    }
    places["person"].ask_to_stop("stopped by Ada")
    places["person"].ask_to_stop("stopped by Bob")
    found = {name: await end_of(place) for name, place in places.items()}
    assert (found["own"].code, found["own"].by, found["own"].signal) == (3, None, None)
    assert (found["killed"].code, found["killed"].signal, found["killed"].by) == (137, 9, None)
    assert found["memory"].why == "stopped: it used more than 128 MB of memory"
    assert (found["person"].why, found["person"].by) == ("stopped by Ada", "person")
    assert (found["time"].why, found["time"].by) == ("stopped after 0.3 seconds", "time")
    assert all(each.code for each in found.values())
    assert places["own"].read_output(1000) == "said\n"
    assert found["own"].size == 5


@pytest.mark.parametrize("sandbox", LEVELS)
async def test_what_a_command_leaves_ends_with_it(tmp_path: Path, sandbox: str) -> None:
    mark = f"7{os.getpid()}"
    left = f"(setsid sleep {mark} & ) & sleep {mark} &"
    place = await start(tmp_path / "by itself", f"{left} echo said", sandbox)
    assert (await end_of(place)).code == 0
    assert not find_processes(mark)
    place = await start(tmp_path / "stopped", f"trap '' TERM; {left} touch begun; wait", sandbox)
    await wait_until((tmp_path / "stopped/work/local/begun").exists)
    place.ask_to_stop("stopped")
    ended = await end_of(place)
    assert ended.ended - ended.started >= 5000, "it did not listen"
    assert not find_processes(mark)


@pytest.mark.parametrize("sandbox", LEVELS)
async def test_a_command_does_not_outlive_its_supervisor(tmp_path: Path, sandbox: str) -> None:
    mark = f"8{os.getpid()}"
    place = await start(tmp_path, f"setsid sleep {mark} & touch begun; wait", sandbox)
    await wait_until((tmp_path / "work/local/begun").exists)
    assert place.look() is Life.ALIVE
    os.kill(supervisor_of(place), signal.SIGKILL)
    assert await place.wait(seconds=60) is Life.GONE
    await wait_until(lambda: not find_processes(mark))
    assert place.read_exit() is None
    # A living process with the old number is no sign of life, and nothing is started again.
    (place.path / "pid").write_text(f"{os.getpid()} {os.getpid()}\n")
    assert place.look() is Life.GONE
    _, order = await prepare(tmp_path, "touch again", sandbox)
    await place.start(order)
    assert place.look() is Life.GONE
    assert not (tmp_path / "work/local/again").exists()


@needs_bubblewrap
async def test_a_command_that_is_started_by_many_runs_once(tmp_path: Path) -> None:
    place, order = await prepare(tmp_path, "echo run >> runs; sleep 0.3")
    await asyncio.gather(*(place.start(order) for _ in range(6)))
    assert (await end_of(place)).code == 0
    await place.start(order)
    assert (tmp_path / "work/local/runs").read_text() == "run\n"


@needs_bubblewrap
async def test_nothing_is_started_once_somebody_has_stopped_it(tmp_path: Path) -> None:
    place, order = await prepare(tmp_path, "touch begun")
    assert place.look() is Life.NEW
    place.ask_to_stop("stopped early")
    await place.start(order)
    assert (await end_of(place)).why == "stopped early"
    assert not (tmp_path / "work/local/begun").exists()


_STARTER = """
import asyncio, sys
from pathlib import Path
from tests.integration.test_supervisor import start
async def run():
    await start(Path(sys.argv[1]), "touch begun; read line < ~/gate; echo $line; exit 7")
    print("started", flush=True)
    await asyncio.sleep(600)
asyncio.run(run())
"""


@needs_bubblewrap
def test_a_command_goes_on_when_its_starter_is_killed(tmp_path: Path) -> None:
    gate = tmp_path / "work/local/gate"
    gate.parent.mkdir(parents=True)
    os.mkfifo(gate)
    with subprocess.Popen(
        [sys.executable, "-c", _STARTER, str(tmp_path)],
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"started\n"
        os.killpg(starter.pid, signal.SIGKILL)
    place = ProcessFolder(tmp_path / "processes/prc_1")
    block_until((gate.parent / "begun").exists)
    assert place.look() is Life.ALIVE
    with gate.open("w") as file:
        file.write("through the gate\n")
    block_until(lambda: place.look() is Life.ENDED)
    found = place.read_exit()
    assert found is not None
    assert (found.code, place.read_output(100)) == (7, "through the gate\n")


_WAITER = """
import asyncio, sys
from pathlib import Path
from clew.sandbox.runner import run_command
from tests.integration.test_supervisor import make_sandbox
from tests.sandboxes import make_request
folder = Path(sys.argv[1])
argv = ["sh", "-c", "trap '' TERM; touch begun; setsid sleep " + sys.argv[3] + " & wait"]
asyncio.run(run_command(argv, make_request(folder), make_sandbox(sys.argv[2], folder)))
"""


@pytest.mark.parametrize("sandbox", LEVELS)
def test_a_command_that_somebody_waits_for_ends_when_he_is_killed(
    tmp_path: Path, sandbox: str
) -> None:
    mark, folders = f"8{os.getpid()}", tmp_path / "folders"
    folders.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", _WAITER, str(tmp_path), sandbox, mark],
        env={**os.environ, "TMPDIR": str(folders)},
        start_new_session=True,
    ) as starter:
        block_until((tmp_path / "work/local/begun").exists)
        block_until(lambda: find_processes(mark))
        os.killpg(starter.pid, signal.SIGKILL)
    block_until(lambda: not find_processes(mark))
    block_until(lambda: not [*folders.iterdir()], "its supervisor has removed its folder")


@needs_bubblewrap
async def test_of_a_long_output_both_ends_are_kept_in_little_space(tmp_path: Path) -> None:
    place = await start(
        tmp_path, "echo first; head -c 30000000 /dev/zero; seq 20000; echo last; sleep 600"
    )
    await wait_until(lambda: place.read_output(1000).endswith("last\n"))
    assert sum(one.stat().st_size for one in place.path.iterdir()) < 250_000
    assert read_memory(supervisor_of(place)) <= 12 * 1024
    size = 6 + 30_000_000 + 108_894 + 5
    last = place.read_range(None, 65_536)
    assert (last.size, last.start, len(last.data)) == (size, size - 65_536, 65_536)
    assert last.data.endswith(b"\n20000\nlast\n")
    assert place.read_range(0, 6).data == b"first\n"
    assert place.read_range(10_000_000, 10).start > 29_000_000, "the middle is not kept"
    assert place.read_range(size - 5, 100).data == b"last\n"
    assert place.read_range(size + 5, 100).data == b""
    assert place.read_output(1000).startswith("first\n")
    place.ask_to_stop("stopped")
    assert (await end_of(place)).size == size


@pytest.mark.parametrize("sandbox", LEVELS)
async def test_a_command_reads_what_it_is_given_once(tmp_path: Path, sandbox: str) -> None:
    chosen, request = make_sandbox(sandbox, tmp_path), make_request(tmp_path)
    request = type(request)(workspace=request.workspace, limits=request.limits, takes_input=True)
    await chosen.prepare(request)
    place = ProcessFolder(tmp_path / "prc_1")
    await place.start(make_order(["sh", "-c", "cat; echo ended"], request, chosen))
    assert place.send_input("one", "hello\n")
    assert place.send_input("one", "hello\n")
    await wait_until(lambda: place.read_output(1000) == "hello\n")
    assert place.send_input("two", "é" * 3000, end=True)
    assert (await end_of(place)).code == 0
    assert place.read_range(0, 99_999).data.decode() == f"hello\n{'é' * 3000}ended\n"
    assert not place.send_input("three", "too late\n")


@needs_bubblewrap
async def test_without_input_a_command_reads_nothing_and_a_full_workspace_is_told(
    tmp_path: Path,
) -> None:
    place = await start(tmp_path, "cat; for i in 1 2 3; do head -c 30000000 /dev/zero > $i; done")
    found = await end_of(place)
    assert found.code == 0 or found.why
    assert "remove files that are not needed" in (found.notice or "")
    grown = "for n in $(seq 99); do head -c 4000000 /dev/zero > a$n; sleep 0.1; done"
    place = await start(tmp_path / ".", grown)
    assert place.look() is Life.ENDED, "the same folder is the same process"
    place, order = await prepare(tmp_path, grown)
    place = ProcessFolder(tmp_path / "processes" / "prc_2")
    await place.start(order)
    assert "the workspace holds more than 64 MB" in ((await end_of(place)).why or "")


async def test_a_command_that_cannot_be_started_is_told_with_the_reason(tmp_path: Path) -> None:
    place, order = await prepare(tmp_path, "true", "host")
    with pytest.raises(SandboxError, match="cannot be started: No such file"):
        await place.start(order._replace(argv=["/no/such/program"]))
    found = await end_of(place)
    assert (found.code, found.by) == (127, "error")
    with pytest.raises(SandboxError, match="NUL"):
        await place.start(order._replace(argv=["a\0b"]))


async def test_in_a_container_a_command_is_ended_there_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, program = tmp_path / "state", tmp_path / "bin" / "docker"
    state.mkdir()
    program.parent.mkdir()
    program.write_text(FAKE_DOCKER.replace("STATE", str(state)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    sandbox, request = ContainerSandbox("image"), make_request(tmp_path)
    await sandbox.prepare(request)
    mark = f"9{os.getpid()}"
    place = ProcessFolder(tmp_path / "prc_1")
    await place.start(make_order(["sh", "-c", f"touch begun; exec sleep {mark}"], request, sandbox))
    await wait_until((request.workspace / "begun").exists)
    place.ask_to_stop("stopped")
    assert (await end_of(place)).why == "stopped"
    await wait_until(lambda: not find_processes(mark))


@needs_bubblewrap
async def test_looking_at_a_process_never_keeps_it_from_starting(tmp_path: Path) -> None:
    place, order = await prepare(tmp_path, "echo run")
    lock = place.path / "lock"
    lock.parent.mkdir(parents=True)
    holder = os.open(lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(holder, fcntl.LOCK_SH)
    starting = asyncio.create_task(place.start(order))
    await asyncio.sleep(0.2)
    os.close(holder)
    await starting
    assert (await end_of(place)).code == 0


@needs_bubblewrap
def test_a_command_has_no_descriptor_of_the_loop_that_a_gateway_runs(tmp_path: Path) -> None:
    async def run() -> str:
        command = "ls /proc/self/fd; until [ -e gate ]; do sleep 0.05; done"
        place = await start(tmp_path, command)
        (tmp_path / "work/local/gate").touch()
        assert (await end_of(place)).code == 0
        return place.read_output(1000)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(run()).split() == ["0", "1", "2", "3"]
