"""A gateway under load, and everything else that opens its store meanwhile."""

from __future__ import annotations

import math
import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import httpx2

from tests.acceptance.program import Clew, until

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

#: A message that begins so is not answered while the gateway that asks first is alive.
LASTING = "wait"


class Talk:
    """People who talk to a gateway, each in conversations of their own, at a steady pace."""

    def __init__(
        self,
        url: str,
        *,
        people: int,
        pause: float = 0.0,
        name: str = "talk",
        most: float = math.inf,
    ) -> None:
        """
        ``pause`` seconds lie between an answer and the next message.

        After ``most`` messages a new conversation begins, so that answers do not take longer and
        longer.
        """
        self._url, self._pause, self._most = url, pause, most
        self._enough = threading.Event()
        self._lock = threading.Lock()
        #: Said and answered, by conversation, in order.
        self.answered: dict[str, list[str]] = {f"{name}{n}": [] for n in range(people)}
        #: Wrong answers.
        self.wrong: list[str] = []
        self._times: list[float] = []
        self._threads = [
            threading.Thread(target=self._talk, args=(name,)) for name in self.answered
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Let everybody hear their last answer."""
        self._enough.set()
        for thread in self._threads:
            thread.join()

    def said(self) -> dict[str, int]:
        """Return the number of answered messages, by conversation."""
        with self._lock:
            return {name: len(texts) for name, texts in self.answered.items()}

    def take_times(self) -> list[float]:
        """Seconds that each answer took since the last call."""
        with self._lock:
            taken, self._times = self._times, []
        return taken

    def _talk(self, name: str) -> None:
        person = name
        with httpx2.Client(base_url=self._url, timeout=60) as client:
            while not self._enough.wait(self._pause):
                if len(self.answered[name]) >= self._most:
                    name = self._begin(person)
                text = f"{name} {len(self.answered[name])}"
                began = time.monotonic()
                answer = _answer(client, name, text)
                self._note(name, text, answer, time.monotonic() - began)

    def _begin(self, person: str) -> str:
        with self._lock:
            name = f"{person}-{len(self.answered)}"
            self.answered[name] = []
            return name

    def _note(self, name: str, text: str, answer: str, seconds: float) -> None:
        with self._lock:
            self._times.append(seconds)
            self.answered[name].append(text)
            if answer != f"echo: {text}":
                self.wrong.append(f"{text!r} was answered {answer!r}")


def _answer(client: httpx2.Client, name: str, text: str) -> str:
    body = {"messages": [{"role": "user", "content": text}]}
    headers = {"X-Clew-Conversation": name}
    try:
        answer = client.post("/v1/chat/completions", json=body, headers=headers)
        return answer.json()["choices"][0]["message"]["content"]
    except (httpx2.HTTPError, ValueError, KeyError) as error:
        return f"{error!r}"


def begin_lasting(url: str, number: int) -> None:
    """Say something that is not answered yet, in a conversation of its own."""
    path = f"{url}/api/conversations/lasting{number}/messages"
    httpx2.post(path, json={"text": f"{LASTING} {number}"}, timeout=60).raise_for_status()


def open_and_close(clew: Clew, backup: Path) -> dict[str, Any]:
    """A reader, a check, a backup, a second gateway, once each; what the backup tells."""
    clew.ok("sessions", "list", "--json")
    assert clew.data("fsck")["clean"]
    taken = clew.data("backup", str(backup))
    with clew.serving() as (_, second):
        second.send_signal(signal.SIGTERM)
        _, errors = second.communicate(timeout=60)
    assert second.returncode == 0, errors
    assert '"level": "error"' not in errors
    return taken


@contextmanager
def restored(clew: Clew, backup: Path, taken: dict[str, Any]) -> Generator[str]:
    """A gateway over a backup, in a home of its own: whole, and with exactly what was taken."""
    found = clew.data("restore", str(backup))
    assert found["counts"] == taken["counts"]
    report = clew.data("fsck")
    assert report["clean"], report
    for table in ("conversation", "entry", "turn", "inbox"):
        assert report["checked"][table] == taken["counts"][table]
    with clew.serving() as (url, _):
        yield url


def wait_for_answer(url: str, number: int) -> None:
    """Wait until what lasted is answered, once."""
    text = f"{LASTING} {number}"
    until(lambda: len(said(url, f"lasting{number}")) > 1)
    assert said(url, f"lasting{number}") == [text, f"echo: {text}"]


def said(url: str, name: str) -> list[str]:
    """Return the messages of a conversation, in order."""
    texts: list[str] = []
    after: str | None = "0"
    with httpx2.Client(base_url=f"{url}/api/conversations/{name}", timeout=60) as client:
        while after is not None:
            page = client.get("/entries", params={"after": after, "limit": 1000}).json()
            texts += [entry["text"] for entry in page["items"]]
            after = page["next"]
    return texts
