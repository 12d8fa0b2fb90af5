"""A second ``clew serve`` in one home names the first, and its exit code is its own."""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING

import pytest

from clew.api.discovery import advertise, discover_server
from clew.cli import entry_point

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLEW_MODEL__NAME", "offline")
    (tmp_path / "run").mkdir()
    return tmp_path


def serve(home: Path, port: int) -> int:
    return entry_point.run_command(["--home", str(home), "--set", f"api.port={port}", "serve"])


def test_the_first_one_is_named_with_its_process_and_home(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
        with advertise(home, url=f"http://127.0.0.1:{port}", name="first"):
            assert serve(home, port) == 3
    told = capsys.readouterr()
    assert told.out == ""
    for part in (str(home), f"process {os.getpid()}", f"127.0.0.1:{port}", "--home"):
        assert part in told.err
    assert "another program" not in told.err


def test_a_port_left_by_a_killed_gateway_to_another_program_is_recognised(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where another program has its process number: this one."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
        left = {"url": f"http://127.0.0.1:{port}", "name": "first", "pid": os.getpid()}
        (home / "run" / "api.json").write_text(json.dumps(left), encoding="utf-8")
        assert serve(home, port) == 2
        assert serve(home / "other", port) == 2
    assert capsys.readouterr().err.count("in use by another program") == 2


def test_a_file_of_an_older_gateway_names_no_process(home: Path) -> None:
    (home / "run" / "api.json").write_text('{"url": "http://127.0.0.1:1", "name": "x"}')
    found = discover_server(home)
    assert found is not None
    assert found.pid is None
    assert not found.is_running


def test_the_lock_of_a_server_says_that_it_runs_until_it_ends(home: Path) -> None:
    with advertise(home, url="http://127.0.0.1:1", name="first"):
        found = discover_server(home)
        assert found is not None
        assert found.is_running
        with advertise(home, url="http://127.0.0.1:2", name="second"):
            later = discover_server(home)
        assert later is not None
        assert later.is_running
    text = json.dumps({"url": "http://127.0.0.1:1", "name": "x", "pid": os.getpid()})
    (home / "run" / "api.json").write_text(text, encoding="utf-8")
    left = discover_server(home)
    assert left is not None
    assert not left.is_running
