"""``clew serve``: started, asked, told to stop, killed, started again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from clew.testing import Fail, FakeProvider, Hang, count_user_texts, reply_by_user_text
from tests.acceptance.program import until
from tests.databases import ON_POSTGRES

if TYPE_CHECKING:
    from tests.acceptance.program import Clew, Process

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def ask(url: str, text: str, **headers: str) -> Any:
    body = {"model": "clew", "messages": [{"role": "user", "content": text}]}
    named = {"X-Clew-Conversation": "main", **headers}
    answer = httpx2.post(f"{url}/v1/chat/completions", json=body, headers=named, timeout=60)
    answer.raise_for_status()
    return answer.json()["choices"][0]["message"]["content"]


def told_to_stop(process: Process, number: signal.Signals = signal.SIGTERM) -> tuple[str, str]:
    """Return the output after a request to stop; the exit code is 0."""
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out, err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_line_says_that_it_is_ready_and_a_signal_ends_it(
    clew: Clew, number: signal.Signals
) -> None:
    # Those that are forked come from a process that ignores Ctrl-C.
    with clew.serving(fresh=number is signal.SIGINT) as (url, process):
        assert url.startswith("http://127.0.0.1:")
        assert ask(url, "hello there") == "You said: hello there"
        out, err = told_to_stop(process, number)
    assert out == ""
    assert [json.loads(line)["event"] for line in err.splitlines()][-2:] == ["stopping", "stopped"]


#: A plugin that starts a program, as a server of tools does.
_STARTER = """
import asyncio
from clew.plugin import hookimpl

async def start_program(context):
    place = context.settings.home / "descriptors"
    program = f"ls -l /proc/self/fd > {place}.new && mv {place}.new {place}"
    await (await asyncio.create_subprocess_exec("sh", "-c", program)).wait()
    await asyncio.Event().wait()

@hookimpl
def register(registry):
    registry.add_service("starter", start_program)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_no_program_that_it_starts_has_what_it_inherited(
    clew: Clew, monkeypatch: pytest.MonkeyPatch
) -> None:
    (clew.home / "plugins").mkdir(parents=True)
    (clew.home / "plugins/starter.py").write_text(_STARTER)
    (clew.home / "config.toml").write_text('[plugins]\nenabled = ["starter"]\n')
    monkeypatch.setattr(subprocess, "Popen", partial(subprocess.Popen, close_fds=False))
    inherited = os.open(clew.home / "config.toml", os.O_RDONLY)
    os.set_inheritable(inherited, True)
    try:
        with clew.serving(fresh=True):
            until((clew.home / "descriptors").exists)
    finally:
        os.close(inherited)
    assert str(clew.home / "config.toml") not in (clew.home / "descriptors").read_text()


@pytest.mark.parametrize("durable", ON_POSTGRES, indirect=True)
def test_http_and_command_line_talk_in_one_conversation(durable: Clew) -> None:
    with durable.serving() as (url, _):
        assert ask(url, "I am Ariadne") == "You said: I am Ariadne"
        assert durable.ok("chat", "what did I say?") == "You told me: I am Ariadne\n"
        assert "Ariadne" in ask(url, "what did I say?")


def test_a_turn_that_was_under_way_continues_at_the_next_start(durable: Clew) -> None:
    # The campaign of kills has the other one.
    ending = signal.SIGKILL if "CLEW_STORE__URL" in durable.env else signal.SIGTERM
    with FakeProvider(
        reply_by_user_text({"first": [Hang()]}, default=count_user_texts)
    ) as provider:
        asking = durable.asking(provider)
        with asking.serving() as (_, process), asking.started("chat", "first") as chat:
            until(lambda: provider.requests)
            chat.kill()
            process.send_signal(ending)
            process.communicate(timeout=60)
        with asking.serving() as (url, _):
            assert ask(url, "second") == "turn 2: I have seen: first | second"
    assert [text for who, text in durable.said() if who == "user"] == ["first", "second"]


def test_a_port_in_use_is_reported_with_the_way_out(clew: Clew) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = clew.run("--set", f"api.port={port}", "serve")
    assert (ran.code, ran.out) == (2, "")
    assert port in ran.err
    assert "api.port" in ran.err


def test_a_second_one_in_the_same_home_names_the_first(clew: Clew) -> None:
    with clew.serving() as (url, process):
        ran = clew.run("--set", f"api.port={url.rpartition(':')[2]}", "serve")
    assert (ran.code, ran.out) == (3, "")
    assert f"process {process.pid}" in ran.err
    assert str(clew.home) in ran.err


def test_it_refuses_to_be_open_to_the_network_without_a_token(clew: Clew) -> None:
    ran = clew.run("--set", "api.host=0.0.0.0", "--set", "api.port=0", "serve")
    assert (ran.code, ran.out) == (2, "")
    assert "api.token" in ran.err


def test_logs_are_json_lines_and_hold_no_secret(clew: Clew) -> None:
    def leak(request: object) -> Any:
        return Fail("authentication", body={"error": {"message": "bad key sk-very-secret-1"}})

    with FakeProvider(leak) as provider:
        secret = clew.asking(provider).with_env({"CLEW_MODEL__API_KEY": "sk-very-secret-1"})
        with secret.serving() as (url, process):
            with pytest.raises(httpx2.HTTPStatusError):
                ask(url, "hello")
            _, err = told_to_stop(process)
    records = [json.loads(line) for line in err.splitlines()]
    assert "model_request_failed" in [record["event"] for record in records]
    assert "sk-very-secret-1" not in err
