"""A store without room: nothing more is accepted, what is there can be read, and it comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Concatenate, LiteralString, ParamSpec, TypeVar, cast

import pytest
import structlog

from clew.cli import entry_point
from clew.errors import StoreFull
from clew.store.opening import open_store
from clew.testing import FakeProvider, Text
from tests.integration.api_server import always, running, settings_for, until
from tests.killing.killer import job_name
from tests.line.points import PointedStore, Points

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator
    from pathlib import Path

    import httpx2

    from clew.store.contract import Tx
from tests.integration.api_server import Server

T = TypeVar("T")
P = ParamSpec("P")

#: Does not fit into the pages that are left.
LONG = "x" * 300_000


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(always(Text("short"))) as fake:
        yield fake


@pytest.fixture
async def server(tmp_path: Path, provider: FakeProvider) -> AsyncGenerator[Server]:
    async with running(settings_for(tmp_path, provider=provider)) as found:
        yield found


def limit(t: Tx, spare: int | None = None) -> None:
    """Leave only so many pages to grow by; without a number, as many as one likes."""
    row = t.fetch_one("PRAGMA page_count")
    assert row is not None
    most = 2**31 if spare is None else row[0] + spare
    t.fetch_all(cast("LiteralString", f"PRAGMA max_page_count = {most}"))


async def test_a_message_for_which_there_is_no_room_is_refused_with_507_and_the_rest_continues(
    server: Server,
) -> None:
    assert (await server.say("hello")).status_code == 200
    await server.store.write(limit, 3)
    refused = await server.say(LONG, Idempotency_Key="k")
    assert (refused.status_code, refused.json()["error"]["code"]) == (507, "store_full")
    assert "make room" in refused.json()["error"]["message"]
    assert refused.headers["x-should-retry"] == "false"
    listed = await server.http.get("/api/conversations/talk/entries")
    assert [each["text"] for each in listed.json()["items"]] == ["hello", "short"]
    await server.store.write(limit)
    again = await server.say(LONG, Idempotency_Key="k")
    assert again.status_code == 200
    listed = await server.http.get("/api/conversations/talk/entries")
    assert [len(each["text"]) for each in listed.json()["items"]] == [5, 5, len(LONG), 5]


async def test_an_answer_for_which_there_is_no_room_is_made_again_when_there_is(
    server: Server, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model is not asked again and again for what cannot be stored."""
    monkeypatch.setattr("clew.engine.conversation_workers._RETRY_PAUSE", 0.2)
    assert (await server.say("hello")).status_code == 200
    provider.script = always(Text(LONG))
    await server.store.write(limit, 8)
    accepted = await server.http.post("/api/conversations/talk/messages", json={"text": "long"})
    assert accepted.status_code == 202
    asked = len(provider.requests)

    async def has_failed() -> bool:
        return len(provider.requests) > asked + 1

    await until(has_failed)
    assert len(provider.requests) <= asked + 3
    await server.store.write(limit)

    async def is_answered() -> bool:
        listed = await server.http.get("/api/conversations/talk/entries")
        return len(listed.json()["items"]) == 4

    await until(is_answered)


def test_the_doctor_says_that_there_is_no_room(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert entry_point.run_command(["--home", str(tmp_path), "sessions", "list"]) == 0
    monkeypatch.setattr("clew.store.sqlite.store._MIN_FREE_BYTES", 1 << 70)
    assert entry_point.run_command(["--home", str(tmp_path), "doctor", "--offline"]) == 1
    assert "no space left" in capsys.readouterr().out


class NoRoomToGoOn(PointedStore):
    """A store in which messages still fit, and what comes of them does not."""

    full = False

    async def write(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        if self.full and job_name(job) == "turns.begin_work":
            raise StoreFull("there is no space left for the store: nothing was stored; make room")
        return await super().write(job, *args, **kwargs)


@pytest.fixture
async def tight(tmp_path: Path, provider: FakeProvider) -> AsyncGenerator[Server]:
    settings = settings_for(tmp_path, provider=provider)
    store = NoRoomToGoOn(await open_store(settings.store.url, home=tmp_path), Points())
    async with running(settings, opened=store) as found:
        yield found


def fill(server: Server, *, full: bool) -> None:
    assert isinstance(server.store, NoRoomToGoOn)
    server.store.full = full


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_a_caller_of_a_turn_that_cannot_start_learns_that_it_is_stored(
    tight: Server, stream: bool
) -> None:
    fill(tight, full=True)
    with structlog.testing.capture_logs() as logs:
        for number in (1, 2):
            told = await asks(tight, f"message {number}", stream=stream)
            assert (told.status_code, told.json()["error"]["code"]) == (507, "store_full")
            assert "is stored" in told.json()["error"]["message"]
            assert told.headers["x-should-retry"] == "false"
    assert len([each for each in logs if each["event"] == "store_failed"]) == 1
    fill(tight, full=False)

    async def is_answered() -> bool:
        listed = await tight.http.get("/api/conversations/talk/entries")
        texts = [each["text"] for each in listed.json()["items"]]
        return texts == ["message 1", "short", "message 2", "short"]

    await until(is_answered)
    assert (await asks(tight, "message 3", stream=stream)).status_code == 200


async def asks(server: Server, text: str, *, stream: bool) -> httpx2.Response:
    body = {"messages": [{"role": "user", "content": text}], "stream": stream}
    headers = {"X-Clew-Conversation": "talk"}
    return await server.http.post("/v1/chat/completions", json=body, headers=headers)


async def test_a_command_that_cannot_be_carried_out_for_lack_of_room_is_answered(
    tight: Server,
) -> None:
    assert (await tight.say("hello")).status_code == 200
    fill(tight, full=True)
    closed = await tight.http.post("/api/conversations/talk/close")
    assert (closed.status_code, closed.json()["error"]["code"]) == (507, "store_full")
    assert "is stored" in closed.json()["error"]["message"]
