"""Other ways on over HTTP: branches, rewinds, compactions and what undoes them."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from clew.config.settings import CompactionSettings
from clew.core.ids import SessionId
from clew.store.transactions import locks
from clew.testing import FakeProvider, Text, count_user_texts
from clew.wire import models
from tests.contract.lifecycle.doubles import SUMMARY
from tests.integration.api_server import always, running, settings_for, until
from tests.integration.test_api_conversations import problem, shaped

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    from clew.testing import ProviderRequest, Reply
    from tests.integration.api_server import Server

#: Some 600 tokens; of these a window of 10,000 keeps three.
LONG = "it flows and flows. " * 90


class Summarising:
    """Tells what it was sent, and writes summaries."""

    def __init__(self) -> None:
        self.summaries = 0
        #: A summary waits for it.
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, request: ProviderRequest) -> Reply:
        if "You keep the memory" not in request.last_user_text:
            return count_user_texts(request)
        self.summaries += 1
        assert self.gate.wait(20)
        return Text(SUMMARY)


@pytest.fixture
def model() -> Summarising:
    return Summarising()


@pytest.fixture
def provider(model: Summarising) -> Iterator[FakeProvider]:
    with FakeProvider(model) as fake:
        yield fake


@pytest.fixture
async def server(tmp_path: Path, provider: FakeProvider, store_url: str) -> AsyncGenerator[Server]:
    """A server over each kind of store, that compacts only when it is asked to."""
    settings = settings_for(tmp_path, provider=provider, store_url=store_url)
    settings = replace(
        settings,
        model=replace(settings.model, context_window=10_000),
        compaction=CompactionSettings(enabled=False),
    )
    async with running(settings) as found:
        yield found


async def _post(server: Server, name: str, what: str, body: Any = None, status: int = 200) -> Any:
    answer = await server.http.post(f"/api/conversations/{name}/{what}", json=body)
    shape = models.CompactedShape if what == "compact" else models.ConversationShape
    return problem(answer, status) if status >= 400 else shaped(answer, shape)


async def _answer(server: Server, text: str, name: str = "talk") -> str:
    return (await server.say(text, name)).json()["choices"][0]["message"]["content"]


async def test_a_branch_goes_its_own_way_under_its_own_name(server: Server) -> None:
    for text in ("one", "two"):
        await server.say(text)
    old = (await server.http.get("/api/conversations/talk")).json()
    copy = await _post(
        server, old["head_session"], "branch", {"at": 2, "title": "Aside", "name": "aside"}
    )
    assert copy["origin"] == {"id": old["id"], "seq": 2}
    assert (copy["title"], copy["routes"]) == ("Aside", ["agent:main:local:aside"])
    assert await _answer(server, "three", "aside") == "turn 2: I have seen: one | three"
    assert await _answer(server, "three") == "turn 3: I have seen: one | two | three"


async def test_a_branch_that_cannot_be_is_refused_and_leaves_nothing(server: Server) -> None:
    await server.say("one")
    await _post(server, "talk", "rename", {"title": "Plans"})
    assert "no entry 9" in (await _post(server, "talk", "branch", {"at": 9}, 400))["message"]
    taken = await _post(server, "talk", "branch", {"title": "Plans"}, 409)
    assert taken["code"] == "title_taken"
    for body in ({"name": "cnv_1"}, {"name": ""}, {"at": -1}, {"title": " "}, {"at": "1"}):
        await _post(server, "talk", "branch", body, 400)
    listed = await server.http.get("/api/conversations")
    assert len(listed.json()["items"]) == 1


async def test_a_rewind_takes_the_context_back_and_keeps_the_log(server: Server) -> None:
    for text in ("one", "two"):
        await server.say(text)
    before = (await server.http.get("/api/conversations/talk")).json()["head_session"]
    view = await _post(server, before, "rewind", {"to": 2})
    assert view["sessions"][-1]["opened_by"] == "rewind"
    assert view["entries"] == 4
    assert await _answer(server, "three", before) == "turn 2: I have seen: one | three"
    assert "no entry 99" in (await _post(server, "talk", "rewind", {"to": 99}, 400))["message"]
    for body in ({}, {"to": -1}, {"to": "2"}):
        assert (await _post(server, "talk", "rewind", body, 400))["param"] == "to"


async def test_a_compaction_says_what_it_did_and_can_be_undone(
    server: Server, model: Summarising
) -> None:
    for number in range(3):
        await server.say(f"river {number}: {LONG}")
    first = (await server.http.get("/api/conversations/talk")).json()["head_session"]
    preview = await _post(server, "talk", "compact", {"dry_run": True})
    assert (preview["moved"], preview["session"], model.summaries) == (False, first, 0)
    done = await _post(server, first, "compact", {"focus": "the river"})
    assert (done["moved"], model.summaries) == (True, 1)
    assert (done["messages_before"], done["messages_after"]) == (6, preview["messages_after"])
    assert done["tokens_before"] == preview["tokens_before"]
    assert preview["tokens_after"] < done["tokens_after"] < done["tokens_before"]
    assert done["note"] == SUMMARY.strip()
    view = (await server.http.get(f"/api/conversations/{first}")).json()
    assert view["head_session"] == done["session"] != first
    assert view["sessions"][0]["end_reason"] == "compression"
    assert "river 0" not in await _answer(server, "and now?")
    back = await _post(server, first, "restore")
    assert back["sessions"][-1]["opened_by"] == "restore"
    assert "river 0" in await _answer(server, "and now?")
    nothing = await _post(server, "talk", "restore", None, 409)
    assert "no compaction to undo" in nothing["message"]


async def test_the_lineage_has_the_origin_the_summaries_and_the_branches(server: Server) -> None:
    for number in range(3):
        await server.say(f"river {number}: {LONG}")
    done = await _post(server, "talk", "compact", {})
    copy = await _post(server, "talk", "branch", {"at": 2, "title": "Aside", "name": "aside"})
    found = await _lineage(server, "talk")
    start, compacted = found["sessions"]
    assert (start["opened_by"], start["summary"], start["kept_from"]) == ("start", None, None)
    assert compacted["id"] == done["session"]
    assert (compacted["opened_by"], compacted["opened_seq"]) == ("compression", 6)
    assert compacted["summary"] == SUMMARY.strip()
    assert 2 <= compacted["kept_from"] <= 6
    assert found["origin"] is None
    assert [(one["id"], one["seq"], one["title"]) for one in found["branches"]] == [
        (copy["id"], 2, "Aside")
    ]
    other = await _lineage(server, "aside")
    assert (other["origin"]["id"], other["origin"]["seq"]) == (found["conversation"], 2)
    await server.http.delete(f"/api/conversations/{copy['id']}")
    assert (await _lineage(server, "talk"))["branches"] == []
    gone = await server.http.get("/api/conversations/none/lineage")
    assert problem(gone, 404)["code"] == "not_found"


async def _lineage(server: Server, name: str) -> Any:
    answer = await server.http.get(f"/api/conversations/{name}/lineage")
    return shaped(answer, models.LineageShape)


async def test_a_compaction_with_nothing_to_do_says_so_and_asks_no_model(
    server: Server, model: Summarising
) -> None:
    await server.say("hello")
    preview = await _post(server, "talk", "compact", {"dry_run": True})
    done = await _post(server, "talk", "compact", {})
    assert preview == done
    assert (done["moved"], done["messages_before"], done["messages_after"]) == (False, 2, 2)
    assert done["note"] == "there is nothing to compact yet"
    assert model.summaries == 0
    wrong: tuple[Any, ...] = ({"focus": 7}, {"dry_run": "yes"}, [])
    for body in wrong:
        await _post(server, "talk", "compact", body, 400)


async def test_a_summary_that_is_no_good_is_reported_and_changes_nothing(
    server: Server, provider: FakeProvider
) -> None:
    """B005"""
    for number in range(3):
        await server.say(f"river {number}: {LONG}")
    provider.script = always(Text("I cannot do that."))
    done = await _post(server, "talk", "compact", {})
    assert done["moved"] is False
    assert "headings" in done["note"]
    assert done["tokens_before"] == done["tokens_after"] > 3_000
    provider.script = count_user_texts
    assert (await _answer(server, "and now?")).startswith("turn 4: I have seen: river 0")


async def test_a_second_compaction_is_refused_while_one_is_under_way(
    server: Server, model: Summarising
) -> None:
    """B046"""
    for number in range(3):
        await server.say(f"river {number}: {LONG}")
    model.gate.clear()
    first = asyncio.create_task(_post(server, "talk", "compact", {}))

    async def summarised() -> bool:
        return model.summaries == 1

    await until(summarised)
    refused = await _post(server, "talk", "compact", {}, 409)
    assert refused["code"] == "conflict"
    assert "another compaction" in refused["message"]
    assert (await _post(server, "talk", "compact", {"dry_run": True}))["moved"] is False
    model.gate.set()
    assert (await first)["moved"] is True
    assert model.summaries == 1


async def test_a_compaction_is_refused_while_another_process_compacts(
    server: Server, model: Summarising
) -> None:
    said = await server.say("hello")
    session = SessionId(said.headers["X-Clew-Session"])
    await server.store.write(locks.try_acquire_compression_lock, session, "external_holder")
    assert "another compaction" in (await _post(server, "talk", "compact", {}, 409))["message"]
    assert model.summaries == 0
