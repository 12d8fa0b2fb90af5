"""The real program and a collector: a killed turn keeps its trace, and off means off."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import httpx2

from clew.testing import FakeProvider, Hang, Text, reply_in_sequence
from tests.acceptance.program import until
from tests.features.otlp_receiver import collecting

if TYPE_CHECKING:
    from tests.acceptance.program import Clew

SPY = """\
import os, pathlib, sys
from clew.plugin import hookimpl

@hookimpl
def post_llm_call(session_id):
    path = pathlib.Path(os.environ["CLEW_HOME"], "modules")
    path.with_suffix(".new").write_text(" ".join(sys.modules))
    path.with_suffix(".new").rename(path)
"""


def test_a_turn_that_was_killed_goes_on_in_the_same_trace(clew: Clew) -> None:
    replies = reply_in_sequence([Hang()], default=Text("done"))
    with collecting() as collector, FakeProvider(replies) as provider:
        asking = clew.asking(provider).with_env({"CLEW_TELEMETRY__OTLP_ENDPOINT": collector.url})
        with asking.serving() as (url, process):
            httpx2.post(
                f"{url}/api/conversations/talk/messages", json={"text": "hello"}, timeout=60
            )
            until(lambda: provider.requests)
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)
        with asking.serving() as (url, process):
            until(lambda: collector.named("invoke_agent"))
            process.terminate()
            process.communicate(timeout=60)
        (run,) = collector.named("invoke_agent")
        (chat,) = collector.named("chat")
    assert (run.attributes["clew.turn.resumed"], chat.trace) == (True, run.trace)
    shown = asking.data("sessions", "show", "talk")
    assert set(shown["traces"].values()) == {run.trace}
    assert f"trace {run.trace}" in asking.ok("sessions", "show", "talk")


def test_without_an_address_nothing_of_it_is_imported(clew: Clew) -> None:
    (clew.home / "plugins").mkdir(parents=True)
    (clew.home / "plugins" / "spy.py").write_text(SPY)
    spied = clew.with_env({"CLEW_PLUGINS__ENABLED": "spy"})
    with spied.serving(fresh=True) as (url, _):
        said = {"threadId": "talk", "runId": "one", "messages": [user("hello")]}
        assert httpx2.post(f"{url}/ag-ui", json=said, timeout=60).status_code == 200
        until((clew.home / "modules").exists)
    loaded = (clew.home / "modules").read_text().split()
    heavy = ("opentelemetry.sdk", "opentelemetry.exporter", "google.protobuf", "ag_ui")
    ours = ("clew.features.telemetry.tracer", "clew.features.telemetry.providers")
    assert "clew.features.telemetry" in loaded
    assert [name for name in loaded if name.startswith((*heavy, *ours))] == []


def user(text: str) -> dict[str, str]:
    return {"id": "mine", "role": "user", "content": text}
