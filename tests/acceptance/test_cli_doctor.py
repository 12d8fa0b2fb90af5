"""``clew doctor``: what is wrong is named, with what to do, and nothing is disturbed."""

from __future__ import annotations

import json
import signal
import socket
import threading
from typing import TYPE_CHECKING, Any, Self

import httpx2
import pytest

from clew.testing import Fail, FakeProvider, Hang, echo, sequence
from tests.acceptance.program import Terminal

if TYPE_CHECKING:
    from pathlib import Path

    from tests.acceptance.program import Clew

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture
def quiet(clew: Clew) -> Clew:
    """A home whose port nobody else has."""
    return clew.with_env({"CLEW_API__PORT": "0"})


def told(clew: Clew, *args: str, code: int = 0) -> dict[str, list[dict[str, Any]]]:
    """The findings of a run by what they are about; it exits with ``code``."""
    ran = clew.run("doctor", *args, "--json")
    assert ran.code == code, ran
    found: dict[str, list[dict[str, Any]]] = {}
    for finding in json.loads(ran.out)["findings"]:
        found.setdefault(finding["what"], []).append(finding)
    return found


def levels(found: dict[str, list[dict[str, Any]]]) -> set[str]:
    return {finding["level"] for findings in found.values() for finding in findings}


def test_a_home_that_is_not_there_yet_is_well_and_stays_away(quiet: Clew) -> None:
    assert levels(told(quiet)) == {"ok"}
    assert not quiet.home.exists()


def test_a_store_in_use_is_well(durable: Clew) -> None:
    with durable.serving() as (url, _):
        durable.ok("chat", "hello there")
        port = url.rpartition(":")[2]
        found = told(durable.with_env({"CLEW_API__PORT": port}))
    assert "answers" in found["port"][0]["detail"]
    assert "serve" in found["processes"][0]["detail"]
    assert "fail" not in levels(found)
    assert [each["level"] for each in found["store"] + found["clock"]] == ["ok", "ok"]


def test_files_that_others_may_read_are_named_and_mended_on_demand(quiet: Clew) -> None:
    quiet.ok("chat", "hello there")
    config, database = quiet.home / "config.toml", quiet.home / "clew.db"
    config.write_text("")
    loose = {quiet.home: 0o755, config: 0o644, database: 0o664}
    for path, mode in loose.items():
        path.chmod(mode)
    named = told(quiet, code=1)["home"][0]
    assert str(database) in named["detail"]
    assert named["fix"] == "clew doctor --fix"
    assert modes(loose) == loose
    assert levels(told(quiet, "--fix")) == {"ok"}
    assert modes(loose) == {quiet.home: 0o700, config: 0o600, database: 0o600}


def modes(paths: dict[Path, int]) -> dict[Path, int]:
    return {path: path.stat().st_mode & 0o777 for path in paths}


def test_every_wrong_setting_is_named(quiet: Clew) -> None:
    quiet.home.mkdir(mode=0o700)
    (quiet.home / "config.toml").write_text('[api]\nprot = 1\n[sesion]\nreset = "x"\n')
    (quiet.home / "config.toml").chmod(0o600)
    found = told(quiet, code=1)["settings"]
    assert ["prot" in each["detail"] or "sesion" in each["detail"] for each in found] == [True] * 2


def test_a_secret_that_is_not_there_is_named(quiet: Clew) -> None:
    quiet.home.mkdir(mode=0o700)
    (quiet.home / "config.toml").write_text('[api]\ntoken = { env = "NO_SUCH" }\n')
    found = told(quiet, "--fix", code=1)
    assert "NO_SUCH" in found["settings"][0]["detail"]


def test_a_model_that_answers_is_asked_once_and_not_at_all_offline(quiet: Clew) -> None:
    with FakeProvider(echo) as provider:
        asking = quiet.asking(provider)
        assert told(asking)["model"][0]["level"] == "ok"
        assert len(provider.requests) == 1
        assert told(asking, "--offline")["model"][0]["level"] == "ok"
        assert len(provider.requests) == 1


def test_a_model_that_does_not_answer_is_a_failure_told_without_its_key(quiet: Clew) -> None:
    def refuse(request: object) -> Any:
        return Fail("authentication", body={"error": {"message": "bad key sk-very-secret-1"}})

    with FakeProvider(refuse) as provider:
        asking = quiet.asking(provider).with_env({"CLEW_MODEL__API_KEY": "sk-very-secret-1"})
        ran = asking.run("doctor")
    assert ran.code == 1
    assert "model.api_key" in ran.out
    assert "sk-very-secret-1" not in ran.out + ran.err


def test_a_model_without_its_key_is_named(clew: Clew) -> None:
    found = told(clew.with_env({"CLEW_MODEL__NAME": "openai:gpt-5-mini"}), "--offline", code=1)
    assert "OPENAI_API_KEY" in found["model"][0]["detail"]


def test_a_port_that_another_program_has_is_a_failure(clew: Clew) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        found = told(clew.with_env({"CLEW_API__PORT": port}), code=1)["port"][0]
    assert port in found["detail"]
    assert "api.port" in found["fix"]


def test_a_damaged_file_is_told_and_left_as_it_is(quiet: Clew) -> None:
    quiet.ok("chat", "hello there")
    database = quiet.home / "clew.db"
    raw = bytearray(database.read_bytes())
    for page in range(4, len(raw) // 4096, 3):
        raw[page * 4096 : page * 4096 + 200] = bytes(range(200))
    database.write_bytes(raw)
    found = told(quiet, code=1)
    damage = [each for each in [*found["store"], *found.get("integrity", [])] if each["fix"]]
    assert "backup" in damage[0]["fix"]
    assert database.read_bytes() == bytes(raw)


def test_a_foreign_database_is_told_and_left_alone(quiet: Clew) -> None:
    quiet.home.mkdir(mode=0o700)
    (quiet.home / "clew.db").write_text("no database at all, but some text " * 50)
    (quiet.home / "clew.db").chmod(0o600)
    assert "not a database" in told(quiet, code=1)["store"][0]["detail"]


@pytest.mark.postgres
def test_a_missing_stand_by_is_told(clew: Clew, postgres_url: str) -> None:
    found = told(clew.with_env({"CLEW_STORE__URL": postgres_url, "CLEW_API__PORT": "0"}))
    assert "no synchronous stand-by" in found["stand-by"][0]["detail"]
    assert "lacks" in found["store"][0]["detail"]
    assert "processes" not in found


def test_what_a_dead_process_left_is_told(durable: Clew) -> None:
    quiet = durable.with_env({"CLEW_API__PORT": "0"})
    with FakeProvider(sequence([Hang()])) as provider:
        asking = quiet.asking(provider)
        with asking.started("chat", "first"):
            while not provider.requests:
                pass
        left = told(asking, "--offline")["leases"][0]
    assert left["level"] == "warn"
    assert "1 conversation" in left["detail"]
    assert "clew serve" in left["fix"]


def test_twenty_runs_beside_a_process_that_writes_disturb_nobody(durable: Clew) -> None:
    with durable.serving() as (url, server), Asking(url) as asking:
        for _ in range(20):
            found = told(durable.with_env({"CLEW_API__PORT": url.rpartition(":")[2]}))
            assert "fail" not in levels(found)
        asking.stop()
        server.send_signal(signal.SIGTERM)
        _, err = server.communicate(timeout=60)
    assert asking.answers
    assert asking.answers == [f"You said: {number}" for number in range(len(asking.answers))]
    assert '"level": "error"' not in err
    shown = durable.data("sessions", "show", "busy", "--limit", "1")
    assert shown["conversation"]["entries"] == 2 * len(asking.answers)


class Asking:
    """Somebody who talks to a gateway without a pause."""

    def __init__(self, url: str) -> None:
        self.answers: list[str] = []
        self._url, self._enough = url, threading.Event()
        self._thread = threading.Thread(target=self._talk)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._enough.set()
        self._thread.join()

    def _talk(self) -> None:
        headers = {"X-Clew-Conversation": "busy"}
        with httpx2.Client(base_url=self._url, headers=headers, timeout=60) as client:
            while not self._enough.is_set():
                body = {"messages": [{"role": "user", "content": str(len(self.answers))}]}
                answer = client.post("/v1/chat/completions", json=body).json()
                self.answers.append(answer["choices"][0]["message"]["content"])


def test_on_a_terminal_it_says_what_it_looks_at(quiet: Clew) -> None:
    with Terminal(quiet, "doctor") as terminal:
        terminal.see("looking at")
        terminal.see("all is well")
        assert terminal.ended() == 0
