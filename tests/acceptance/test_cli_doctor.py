"""``clew doctor``: what is wrong is named, with what to do, and nothing is disturbed."""

from __future__ import annotations

import json
import signal
import threading
from typing import TYPE_CHECKING, Any, Self

import httpx2
import pytest

from clew.testing import FakeProvider, Hang, reply_in_sequence
from tests.acceptance.program import until
from tests.acceptance.terminal import Terminal

if TYPE_CHECKING:
    from tests.acceptance.program import Clew

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


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
        until(lambda: httpx2.get(f"{url}/readyz", timeout=60).status_code == 200)
        port = url.rpartition(":")[2]
        found = told(durable.with_env({"CLEW_API__PORT": port}))
    assert "answers" in found["port"][0]["detail"]
    assert "serve" in found["processes"][0]["detail"]
    assert "fail" not in levels(found)
    assert [each["level"] for each in found["store"] + found["clock"]] == ["ok", "ok"]


def test_work_that_a_dead_process_left_is_reported(durable: Clew) -> None:
    quiet = durable.with_env({"CLEW_API__PORT": "0"})
    with FakeProvider(reply_in_sequence([Hang()])) as provider:
        asking = quiet.asking(provider)
        with asking.started("chat", "first"):
            until(lambda: provider.requests)
        left = told(asking, "--offline")["leases"][0]
    assert left["level"] == "warn"
    assert "1 conversation" in left["detail"]
    assert "clew serve" in left["fix"]


def test_five_runs_beside_a_writing_process_disturb_nothing(clew: Clew) -> None:
    with clew.serving() as (url, server), Asking(url) as asking:
        for _ in range(5):
            found = told(clew.with_env({"CLEW_API__PORT": url.rpartition(":")[2]}))
            assert "fail" not in levels(found)
        asking.stop()
        server.send_signal(signal.SIGTERM)
        _, err = server.communicate(timeout=60)
    assert asking.answers
    assert asking.answers == [f"You said: {number}" for number in range(len(asking.answers))]
    assert '"level": "error"' not in err
    shown = clew.data("sessions", "show", "busy", "--limit", "1")
    assert shown["conversation"]["entries"] == 2 * len(asking.answers)


class Asking:
    """Client that writes to a gateway all the time."""

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
            while not self._enough.wait(0.05):
                body = {"messages": [{"role": "user", "content": str(len(self.answers))}]}
                answer = client.post("/v1/chat/completions", json=body).json()
                self.answers.append(answer["choices"][0]["message"]["content"])


def test_on_a_terminal_it_says_what_it_looks_at(quiet: Clew) -> None:
    with Terminal(quiet, "doctor") as terminal:
        terminal.see("looking at")
        terminal.see("no problems found")
        assert terminal.ended() == 0
