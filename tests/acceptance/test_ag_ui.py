"""A front-end of AG-UI and the real program: a run survives kill -9."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import httpx2

from clew.testing import FakeProvider, Text
from tests.integration.ag_ui_client import Copy

if TYPE_CHECKING:
    from tests.acceptance.program import Clew

WORDS = " ".join(f"word{number}" for number in range(60))


def test_a_run_that_was_killed_in_mid_answer_is_whole_when_it_is_asked_for_again(
    clew: Clew,
) -> None:
    with FakeProvider(lambda _: Text(WORDS, chunks=60, delay=0.02)) as provider:
        asking = clew.asking(provider)
        copy = Copy()
        copy.say("hello", "mine")
        with asking.serving() as (url, process):
            run(url, copy, until="word5")
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)
        assert copy.texts[-1][1] != WORDS
        with asking.serving() as (url, _):
            run(url, copy)
            shown = [*copy.messages]
            run(url, copy)
    assert copy.texts == [("user", "hello"), ("assistant", WORDS)]
    assert copy.messages == shown
    assert copy.end["outcome"] == {"type": "success"}
    assert clew.said("talk") == [("user", "hello"), ("assistant", WORDS)]


def run(url: str, copy: Copy, until: str | None = None) -> None:
    """The same run, to its end or until a text was received."""
    copy.events, copy.opened = [], set()
    asked = {"threadId": "talk", "runId": "one", "messages": copy.messages}
    with httpx2.stream("POST", f"{url}/ag-ui", json=asked, timeout=60) as response:
        assert response.status_code == 200, response.read()
        for line in response.iter_lines():
            if line.startswith("data:"):
                copy.take(json.loads(line.removeprefix("data:")))
            if until is not None and any(until in text for _, text in copy.texts):
                return
