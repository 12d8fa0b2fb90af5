"""Turns are traced where a collector is named: what is sent, and what a dead one costs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from clew.config.secret import Secret
from clew.core.traceparent import parse_traceparent
from clew.features.telemetry.collector_check import check_collector
from clew.features.telemetry.settings import TelemetrySettings
from clew.testing import Calls, Fail, FakeProvider, ScriptedCall, Text, reply_in_sequence
from tests.features.otlp_receiver import collecting
from tests.integration.api_server import running, settings_for
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from clew.config.settings import Settings
    from clew.testing import Reply
    from tests.features.otlp_receiver import Collector

CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TRACE, SPAN = CALLER.split("-")[1:3]
SECRET = "a-secret-of-the-collector"
LOOK: Reply = Calls([ScriptedCall("list_files", {"path": "."})], text="I look at the secret plan.")


def traced(home: Path, provider: FakeProvider, url: str, **more: Any) -> Settings:
    settings = settings_for(home, provider=provider)
    telemetry = TelemetrySettings(otlp_endpoint=url, **more)
    return replace(settings, sections={**settings.sections, "telemetry": telemetry})


async def test_a_turn_with_a_tool_call_is_one_trace_that_continues_that_of_its_caller(
    tmp_path: Path,
) -> None:
    headers = {"X-Key": Secret.from_text(SECRET)}
    with collecting() as collector, FakeProvider(reply_in_sequence([LOOK, Text("done")])) as model:
        async with running(traced(tmp_path, model, collector.url, headers=headers)) as server:
            said = await server.say("my own words", traceparent=CALLER)
            assert (said.status_code, said.headers["x-clew-trace"]) == (200, TRACE)
            talk = await server.engine.resolve_name("talk")
            assert await server.engine.find_trace(talk) == TRACE
            other = await server.say("my own words", "other")
            assert len(other.headers["x-clew-trace"]) == 32
            assert other.headers["x-clew-trace"] != TRACE
        # The process waits for the last batch for a short time only.
        await wait_until(lambda: _has(collector, spans=9, metrics=4))
        spans = [span for span in collector.spans if span.trace == TRACE]
    by_name = {span.name: span for span in spans}
    run, step = by_name["invoke_agent main"], by_name["step 1"]
    chat, tool = by_name["chat fake-model"], by_name["execute_tool list_files"]
    assert (run.parent, step.parent, tool.parent) == (SPAN, run.id, step.id)
    assert by_name["step 2"].parent == run.id
    assert {span.parent for span in spans if span.name.startswith("chat")} == {
        step.id,
        by_name["step 2"].id,
    }
    assert run.attributes["gen_ai.conversation.id"] == talk
    assert run.attributes["clew.turn.outcome"] == "answered"
    assert chat.attributes["gen_ai.operation.name"] == "chat"
    assert chat.attributes["gen_ai.provider.name"] == "openai"
    assert chat.attributes["gen_ai.request.model"] == "fake-model"
    assert int(str(chat.attributes["gen_ai.usage.input_tokens"])) > 0
    assert tool.attributes["gen_ai.tool.name"] == "list_files"
    assert tool.attributes["clew.tool.status"] == "ok"
    told = json.dumps([dict(span.attributes) for span in collector.spans])
    assert not [word for word in ("my own words", "secret plan", SECRET, '"."') if word in told]
    assert {"clew.turns", "clew.turn.duration", "clew.tool.duration"} <= collector.metrics.keys()
    assert "gen_ai.token.type" in collector.metrics["gen_ai.client.token.usage"]
    assert all(one["x-key"] == SECRET for one in collector.headers)


async def _has(collector: Collector, *, spans: int, metrics: int) -> bool:
    return len(collector.spans) >= spans and len(collector.metrics) >= metrics


async def test_texts_are_sent_only_if_the_settings_ask_for_them_and_failures_are_marked(
    tmp_path: Path,
) -> None:
    replies = [LOOK, Text("done"), Fail("authentication")]
    with collecting() as collector, FakeProvider(reply_in_sequence(replies)) as model:
        async with running(traced(tmp_path, model, collector.url, content=True)) as server:
            assert (await server.say("hello")).status_code == 200
            failed = await server.say("again", traceparent="00-nonsense")
            assert (failed.status_code, len(failed.headers["x-clew-trace"])) == (502, 32)
        await wait_until(lambda: _has(collector, spans=9, metrics=4))
    (tool,) = collector.named("execute_tool")
    assert json.loads(str(tool.attributes["gen_ai.tool.call.arguments"]))["path"] == "."
    assert "secret plan" in str(collector.named("chat")[0].attributes["gen_ai.output.messages"])
    (run,) = [span for span in collector.named("invoke_agent") if span.failed]
    assert run.attributes["error.type"] == "authentication"


@pytest.mark.parametrize("accepts", [False, True], ids=["away", "silent"])
async def test_a_dead_collector_delays_no_turn_and_makes_one_line_in_the_log(
    tmp_path: Path, accepts: bool
) -> None:
    with collecting(answers=False) as collector, FakeProvider() as model, capture_logs() as logged:
        url = collector.url if accepts else "http://127.0.0.1:9"
        async with running(traced(tmp_path, model, url)) as server:
            for _ in range(3):
                assert (await server.say("hello")).status_code == 200
        # The server has stopped, although nothing was answered.
        assert collector.spans == []
    events = [line["event"] for line in logged]
    assert "tracer_failed" not in events
    assert events.count("telemetry_not_sent") <= 1


async def test_the_doctor_says_whether_the_collector_answers(tmp_path: Path) -> None:
    with collecting() as collector:
        found = await check_collector(TelemetrySettings(otlp_endpoint=collector.url))
        assert (found.level.value, collector.url in found.detail) == ("ok", True)
    found = await check_collector(TelemetrySettings(otlp_endpoint="http://127.0.0.1:9"))
    assert (found.level.value, found.fix is not None) == ("warn", True)


def test_only_a_valid_trace_context_is_continued() -> None:
    found = parse_traceparent(CALLER)
    assert found is not None
    assert (found.trace_id, found.span_id, found.is_sampled) == (TRACE, SPAN, True)
    assert parse_traceparent(f"cc{CALLER[2:]}-what-comes-later") is not None
    for wrong in (
        None,
        "",
        f"{CALLER}-more",
        f"ff{CALLER[2:]}",
        CALLER.upper(),
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
    ):
        assert parse_traceparent(wrong) is None, wrong
