"""The gateway and a process manager: what it tells one, how it ends, what its state is."""

from __future__ import annotations

import json
import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from clew.testing import Calls, FakeProvider, ScriptedCall, reply_in_sequence
from tests.acceptance.program import until

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from tests.acceptance.program import Clew

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

#: A tool that nothing can stop, as a thread that waits for a broken disk.
STUCK = """
import time

def stuck() -> str:
    "Wait."
    open(FILE, "w").close()
    time.sleep(100)
    return "done"

tools = [stuck]
"""


@contextmanager
def manager_socket(name: str) -> Generator[socket.socket]:
    """The end of a process manager that reads what its services tell."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(name)
        listening.settimeout(120)
        yield listening


def hear(listening: socket.socket, word: str) -> list[str]:
    """The lines of the message that has ``word``, which comes after those of the watchdog."""
    while word not in (lines := listening.recv(4096).decode().split("\n")):
        assert lines == ["WATCHDOG=1"]
    return lines


@pytest.mark.parametrize("abstract", [False, True])
def test_a_manager_hears_that_it_is_ready_alive_and_ending(
    clew: Clew, tmp_path: Path, abstract: bool
) -> None:
    name = f"@clew-{os.getpid()}" if abstract else str(tmp_path / "notify")
    told = {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "200000"}
    with (
        manager_socket(name.replace("@", "\0")) as listening,
        clew.with_env(told).serving() as (url, process),
    ):
        assert hear(listening, "READY=1") == ["READY=1", f"STATUS=Serving at {url}"]
        hear(listening, "WATCHDOG=1")
        process.send_signal(signal.SIGTERM)
        hear(listening, "STOPPING=1")
        process.communicate(timeout=60)
    assert process.returncode == 0


def ask_in_vain(url: str) -> None:
    body = {"model": "clew", "messages": [{"role": "user", "content": "wait"}]}
    with suppress(httpx2.HTTPError):
        httpx2.post(f"{url}/v1/chat/completions", json=body, timeout=100)


def test_a_thread_that_hangs_does_not_keep_it_from_ending(clew: Clew, tmp_path: Path) -> None:
    plugins = clew.home / "plugins"
    plugins.mkdir(parents=True)
    began = tmp_path / "began"
    (plugins / "hanging.py").write_text(STUCK.replace("FILE", repr(str(began))), encoding="utf-8")
    with FakeProvider(reply_in_sequence([Calls((ScriptedCall("stuck"),))])) as provider:
        hanging = clew.asking(provider).with_env({"CLEW_TOOLS__MODULES": "hanging"})
        with hanging.serving() as (url, process), ThreadPoolExecutor(1) as asking:
            asking.submit(ask_in_vain, url)
            until(began.exists)
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "stopping" in [json.loads(line)["event"] for line in err.splitlines()]


def status(clew: Clew) -> Any:
    ran = clew.run("service", "status", "--json")
    found = json.loads(ran.out)["gateway"]
    assert ran.code == (0 if found["ready"] else 1)
    return found


def test_the_state_of_a_gateway_is_that_of_its_lock(clew: Clew) -> None:
    assert not status(clew)["running"]
    with clew.serving() as (url, process):
        until(lambda: status(clew)["ready"])
        found = status(clew)
        assert (found["url"], found["pid"]) == (url, process.pid)
        text = (clew.home / "run" / "api.json").read_text(encoding="utf-8")
        process.kill()
        process.communicate(timeout=60)
    # The file says what it said, and its process number is that of a program which runs.
    left = text.replace(str(process.pid), str(os.getpid()))
    (clew.home / "run" / "api.json").write_text(left, encoding="utf-8")
    assert status(clew) == dict.fromkeys(("url", "pid", "since", "version")) | {
        "running": False,
        "ready": False,
    }
