"""Several gateways on one PostgreSQL: they share the work, and one does what one alone may do."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from clew.testing import FakeProvider, Hang, Slow, Text, reply_by_user_text
from clew.testing.telegram import FakeTelegram
from tests.acceptance.program import Clew, Process, until

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(900)]

#: The URL and process of each.
Gateways = list[tuple[str, Process]]


@contextmanager
def gateways(
    url: str, folder: Path, provider: FakeProvider, env: dict[str, str] | None = None
) -> Generator[Gateways]:
    """Two of them, each with a home of its own, as on another host, and a log."""
    with ExitStack() as stack:
        found: Gateways = []
        for number in (1, 2):
            home = folder / f"home{number}"
            home.mkdir()
            clew = Clew(home, {"CLEW_STORE__URL": url, **(env or {})}).asking(provider)
            errors = stack.enter_context((folder / f"log{number}").open("w"))
            found.append(stack.enter_context(clew.serving(errors=errors)))
        yield found


class Follower:
    """Reads what happens in a conversation, at one gateway."""

    def __init__(self, url: str, conversation: str) -> None:
        self._path = f"{url}/api/conversations/{conversation}/events"
        self.heard: list[tuple[str, Any]] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        name = ""
        with (
            suppress(httpx2.HTTPError),  # its gateway ends
            httpx2.stream("GET", self._path, timeout=60) as answer,
        ):
            for line in answer.iter_lines():
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    self.heard.append((name, json.loads(value)))

    @property
    def entries(self) -> list[int]:
        return [data["seq"] for event, data in self.heard if event == "entry"]

    @property
    def deltas(self) -> str:
        return "".join(data["text"] for event, data in self.heard if event == "delta")


def post(url: str, text: str, name: str) -> None:
    path = f"{url}/api/conversations/{name}/messages"
    httpx2.post(path, json={"text": text}, timeout=60).raise_for_status()


def said(url: str, name: str) -> list[str]:
    answer = httpx2.get(f"{url}/api/conversations/{name}/entries", timeout=60).raise_for_status()
    return [entry["text"] for entry in answer.json()["items"]]


def test_any_gateway_accepts_its_lease_owner_answers_and_every_front_sees_it(
    postgres_url: str, tmp_path: Path
) -> None:
    slow = Slow(Text("the first answer", chunks=4), seconds=2.0)
    script = reply_by_user_text({"first": slow, "killed": [Hang()]})
    with (
        FakeProvider(script) as provider,
        gateways(postgres_url, tmp_path, provider) as ((one, _), (two, killed)),
    ):
        post(two, "hello", "talk")
        until(lambda: len(said(one, "talk")) == 2)
        here, there = Follower(one, "talk"), Follower(two, "talk")
        until(lambda: len(here.entries) == len(there.entries) == 2)
        # The first gateway runs the turn; what comes to the second meanwhile is done there, too.
        post(one, "first", "talk")
        until(lambda: under_way(provider, "first"))
        post(two, "second", "talk")
        until(lambda: len(here.entries) == len(there.entries) == 6)
        assert (here.deltas, there.deltas) == ("the first answerecho: second", "")
        # A free conversation is processed by the gateway that accepts the message.
        post(two, "third", "talk")
        until(lambda: len(here.entries) == len(there.entries) == 8)
        assert (here.deltas, there.deltas) == ("the first answerecho: second", "echo: third")
        # The owner is killed in mid turn: another one goes on, and nobody misses an entry.
        post(two, "killed", "talk")
        until(lambda: under_way(provider, "killed"))
        killed.kill()
        until(lambda: len(here.entries) == 10)
        assert here.entries == list(range(1, 11))
        assert there.entries[:8] == list(range(1, 9))
        assert said(one, "talk")[8:] == ["killed", "echo: killed"]


def test_of_two_gateways_with_one_bot_one_polls_and_the_other_names_it_and_takes_over(
    postgres_url: str, tmp_path: Path
) -> None:
    """B065."""
    with FakeProvider() as provider, FakeTelegram() as telegram:
        channel = {"TOKEN": telegram.token, "BASE_URL": telegram.base_url, "ALLOW": '["42"]'}
        env = {f"CLEW_CHANNELS__TELEGRAM__{name}": value for name, value in channel.items()}
        with gateways(postgres_url, tmp_path, provider, env) as running:
            logs = [tmp_path / "log1", tmp_path / "log2"]
            until(lambda: sorted(states(logs)) == ["channel_ready", "channel_stands_by"])
            holder = states(logs).index("channel_ready")
            (_, first), (url, _) = running[holder], running[1 - holder]
            telegram.post_message("hello")
            until(lambda: telegram.list_texts(42) == ["echo: hello"])
            place = f"serve, pid {first.pid} on {socket.gethostname()}"
            assert place in logs[1 - holder].read_text()
            doctor = Clew(tmp_path / "home1", {"CLEW_STORE__URL": postgres_url, **env})
            found = json.loads(doctor.run("doctor", "--offline", "--json").out)["findings"]
            rights = next(each["detail"] for each in found if each["what"] == "rights")
            assert f"channel:telegram:{telegram.bot_id}: {place}" in rights
            first.kill()
            telegram.post_message("still there?")
            until(lambda: telegram.list_texts(42) == ["echo: hello", "echo: still there?"])
            assert httpx2.get(f"{url}/readyz", timeout=60).status_code == 200
        conflicts = [call for call in telegram.calls if call.status == 409]
        assert conflicts == []


def under_way(provider: FakeProvider, said: str) -> bool:
    """Return whether a request waits for its answer to this message."""
    return any(
        request.outcome == "open" and said in json.dumps((request.json or {})["messages"][-1])
        for request in provider.requests
    )


def states(logs: list[Path]) -> list[str]:
    """Return the last report of each gateway on its channel."""
    found: list[str] = []
    for log in logs:
        events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
        found += [event for event in events if event.startswith("channel_")][-1:]
    return found
