"""What operators see and do over HTTP and JSON-RPC: deliveries, people, channels, turns, usage."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from clew.api.app import build_app
from clew.api.builtin_operations import build_operations
from clew.api.operation_context import OperationContext
from clew.cli.entry_point import run_command
from clew.config import load_settings
from clew.core.access import ChannelAccount
from clew.core.health import ChannelState
from clew.core.route import Route
from clew.core.scope import scope_of
from clew.core.turn import TurnState
from clew.features import admin
from clew.features.admin.operations import OPERATIONS
from clew.gateway.gateway import Gateway
from clew.store.transactions.usage import TokenUsage, UsageRecord, record_usage
from clew.testing.webhook import FakeWebhook
from clew.tui.transports import in_process
from clew.wire.errors import CallFailed, ErrorCode
from tests.channels.desk import echo, table
from tests.integration.api_server import TOKEN, serving
from tests.integration.rpc_clients import client, serve_over
from tests.line.world import open_world
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from clew.api.operations import AnyOperation
    from clew.config import Settings
    from clew.core.ids import ConversationId
    from clew.store.contract import Tx
    from clew.tui.client import RpcClient
    from tests.line.world import World

ACCOUNT = ChannelAccount(channel="webhook", account="webhook")
ANN = Route(platform="webhook", kind="dm", chat="42")
DAY = 24 * 3600 * 1000
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@dataclass(frozen=True, kw_only=True)
class Office:
    """A gateway with a webhook, and an operator who talks with it over both interfaces."""

    world: World
    settings: Settings
    fake: FakeWebhook
    http: httpx2.AsyncClient
    rpc: RpcClient

    async def get(self, path: str, **query: Any) -> Any:
        answer = await self.http.get(f"/api/{path}", params=query)
        assert answer.status_code == 200, answer.text
        assert self.fake.secret not in answer.text
        assert TOKEN not in answer.text
        return answer.json()

    async def post(self, path: str, **body: object) -> httpx2.Response:
        return await self.http.post(f"/api/{path}", json=body)

    async def call(self, method: str, **given: object) -> Any:
        definition = OPERATIONS[method].definition
        done = await self.rpc.call(definition, definition.params.model_validate(given))
        return json.loads(done.model_dump_json())

    async def failed(self, **query: object) -> list[Any]:
        return (await self.get("deliveries", **query))["items"]

    async def code_of(self, user: str, name: str) -> str:
        """Return the code that a stranger is shown."""
        route = Route(platform="webhook", kind="dm", chat=user).key
        pairing = self.world.engine.pairing
        code = await pairing.issue_code(ACCOUNT, user, name=name, route=route)
        assert code is not None
        return code


@asynccontextmanager
async def opened(home: Path, url: str, *, channel: bool = True) -> AsyncGenerator[Office]:
    with FakeWebhook() as fake:
        own = {"base_url": fake.answers_url, "secret": fake.secret, "allow": "42", "operators": "7"}
        flags = {
            "model.name": "openai-chat:none",
            "model.base_url": "http://127.0.0.1:9/v1",
            "api.token": TOKEN,
            "api.port": 0,
            **table("webhook", own),
        }
        settings = load_settings(home=home, flags=flags, environ={})
        async with AsyncExitStack() as stack:
            world = await stack.enter_async_context(open_world(url, home))
            if channel:
                world.model.script = echo
                await stack.enter_async_context(Gateway(world.engine, settings))
                running = world.engine.channels
                await wait_until(lambda: running["webhook"].state is ChannelState.CONNECTED)
            address = await stack.enter_async_context(serving(world.engine, settings))
            fake.set_target(f"{address}/hooks/webhook")
            http = await stack.enter_async_context(
                httpx2.AsyncClient(base_url=address, headers=BEARER, timeout=60)
            )
            context = make_context(world, settings)
            rpc = await stack.enter_async_context(client(in_process(serve_over(context))))
            yield Office(world=world, settings=settings, fake=fake, http=http, rpc=rpc)


def make_context(world: World, settings: Settings, **context: Any) -> OperationContext:
    operations = build_operations(world.engine.features)
    return OperationContext(
        engine=world.engine, settings=settings, operations=operations, **context
    )


async def test_what_a_channel_refused_is_listed_sent_again_and_given_up(
    tmp_path: Path, store_url: str
) -> None:
    async with opened(tmp_path, store_url) as office:
        office.fake.refuse_chat("42")
        office.fake.post_message("hello")
        await wait_until(office.failed)
        (letter,) = await office.failed()
        assert (letter["state"], letter["channel"], letter["open"]) == ("failed", "webhook", False)
        assert "410" in letter["error"]
        assert letter["text"] == "You said: hello"
        assert (await office.call("delivery.list"))["items"] == [letter]
        (channel,) = (await office.get("channels"))["items"]
        assert (channel["state"], channel["platform"]) == ("connected", "webhook")
        assert channel["deliveries"]["failed"] == 1
        assert channel["event"] >= 0
        office.fake.accept_chat("42")
        again = await office.post(f"deliveries/{letter['id']}/retry")
        assert again.json()["state"] == "pending"
        await wait_until(lambda: office.fake.list_texts("42") == ["You said: hello"])

        async def is_empty() -> bool:
            return await office.failed(state="all") == []

        await wait_until(is_empty)
        with pytest.raises(CallFailed) as late:
            await office.call("delivery.give_up", delivery=letter["id"])
        assert late.value.code == ErrorCode.CONFLICT
        assert (await office.post("deliveries/dlv_none/retry")).status_code == 404


async def test_deliveries_are_listed_in_pages_by_state_and_channel(
    tmp_path: Path, store_url: str
) -> None:
    async with opened(tmp_path, store_url, channel=False) as office:
        for user in ("1", "2", "3", "4", "5"):
            code = await office.code_of(user, "Ann")
            assert (await office.post("people/let-in", code=code)).status_code == 200
        letters = await office.failed(state="open")
        assert [one["route"].rpartition(":")[2] for one in letters] == ["5", "4", "3", "2", "1"]
        one = letters[0]["id"]
        assert (await office.call("delivery.give_up", delivery=one))["state"] == "failed"
        assert [each["error"] for each in await office.failed()] == ["dropped by the operator"]
        (channel,) = (await office.get("channels"))["items"]
        assert channel["state"] == "off"
        counts = channel["deliveries"]
        assert (counts["waiting"], counts["failed"]) == (4, 1)
        assert counts["oldest"] == letters[-1]["created_at"]
        found: list[str] = []
        cursor = ""
        while cursor is not None:
            given = {"state": "all", "channel": "webhook", "limit": 2, "cursor": cursor}
            page = await office.get("deliveries", **given)
            assert len(page["items"]) <= 2
            found += [each["id"] for each in page["items"]]
            cursor = page["next"]
        assert found == [each["id"] for each in letters]
        assert await office.failed(state="all", channel="telegram") == []
        assert (await office.http.get("/api/deliveries?cursor=dlv_none")).status_code == 404
        for wrong in ("state=lost", "limit=0", "limit=many"):
            assert (await office.http.get(f"/api/deliveries?{wrong}")).status_code == 400


async def test_a_person_is_let_in_by_their_code_and_shut_out(
    tmp_path: Path, store_url: str
) -> None:
    async with opened(tmp_path, store_url) as office:
        code = await office.code_of("5", "Ann <b>")
        listed = await office.get("people")
        assert code not in str(listed)
        assert [(one["user"], one["standing"]) for one in listed["items"]] == [("5", "asked")]
        assert [(one["user"], one["operator"]) for one in listed["allowed"]] == [
            ("7", True),
            ("42", False),
        ]
        wrong = await office.post("people/let-in", code="ABCD-EFGH")
        assert (wrong.status_code, "code" in wrong.json()["error"]["message"]) == (400, True)
        person = await office.call("person.let_in", code=code.lower())
        assert (person["name"], person["standing"]) == ("Ann <b>", "paired")
        await wait_until(lambda: office.fake.list_texts("5"))
        given = {"user": "5", "channel": person["channel"], "account": person["account"]}
        out = await office.post("people/shut-out", **given)
        assert out.json() == {"user": "5", "standing": "removed"}
        blocked = await office.call("person.shut_out", user="5", block=True)
        assert blocked["standing"] == "blocked"
        # One whom the settings let in, by the NAME of the channel.
        assert (await office.call("person.shut_out", user="42", channel="webhook"))["user"] == "42"
        after = await office.get("people")
        assert {one["user"]: one["standing"] for one in after["items"]} == {
            "5": "blocked",
            "42": "removed",
        }
        assert [one["shut_out"] for one in after["allowed"]] == [False, True]
        office.fake.post_message("hello?")
        await wait_until(lambda: office.fake.statuses)
        for unknown in (
            {"user": "9"},
            {"user": "5", "channel": "telegram"},
            {"user": "5", "channel": "webhook", "account": "other"},
        ):
            assert (await office.post("people/shut-out", **unknown)).status_code == 400, unknown


async def test_running_turns_show_their_calls_holder_and_queue(
    tmp_path: Path, store_url: str
) -> None:
    async with opened(tmp_path, store_url, channel=False) as office:
        world, here, go = office.world, asyncio.Event(), asyncio.Event()

        async def wait() -> None:
            here.set()
            await go.wait()

        world.points.arm("look begins", wait)
        first = await world.say("a: look")
        await here.wait()
        queued = [await world.say(f"b{number}: ") for number in range(7)]
        waiting = await world.say("c: pay", to="other")
        talk = await world.engine.get_state(waiting.conversation_id)

        async def asks() -> bool:
            state = (await world.engine.get_state(waiting.conversation_id)).turn
            return state is not None and state.state is TurnState.WAITING

        await wait_until(asks)
        found = await office.get("turns")
        assert talk.title is None
        running, asking = found["items"]
        assert (running["text"], asking["text"]) == ("a: look", "c: pay")
        assert running["conversation"] == first.conversation_id
        assert [one["tool"] for one in running["calls"]] == ["look"]
        assert (running["state"], running["stopping"]) == ("running", False)
        assert (running["holder"]["role"], running["holder"]["alive"]) == ("test", True)
        assert asking["state"] == "waiting"
        assert [(one["tool"], one["waits"]) for one in asking["calls"]] in ([], [("pay", True)])
        (queue,) = found["queues"]
        assert (queue["waiting"], len(queue["items"])) == (7, 5)
        assert queue["items"][0]["text"] == "b0: "
        assert queue["items"][0]["inbox_id"] == queued[0].inbox_id
        assert (await office.call("turn.list"))["queues"] == [queue]
        go.set()
        for one in queued:
            await world.end(one)
        assert [one["id"] for one in (await office.get("turns"))["items"]] == [asking["id"]]


def _use(t: Tx, conversation: ConversationId, at: int, model: str, cost: int | None) -> None:
    name = f"use_{conversation}_{at}_{model}"
    used = TokenUsage(input_tokens=100, cached_tokens=40, output_tokens=10, cost_micros=cost)
    record_usage(t, conversation, UsageRecord(id=name, used=used, model=model))
    t.execute("UPDATE usage SET created_at = $2, turn_id = $3 WHERE id = $1", name, at, name)


async def test_usage_is_summed_up_by_day_model_conversation_channel_and_person(
    tmp_path: Path, store_url: str
) -> None:
    async with opened(tmp_path, store_url, channel=False) as office:
        engine, store = office.world.engine, office.world.means.store
        mine = (await office.world.say("a: ")).conversation_id
        theirs = (await office.world.say("b: ", to=ANN)).conversation_id
        other = Route(platform="webhook", kind="dm", chat="5", account="work")
        third = (await office.world.say("c: ", to=other)).conversation_id
        await engine.wait_until_idle()
        await store.write(lambda t: t.execute("DELETE FROM usage"))
        rows = [
            (mine, 20_000 * DAY + 5, "big", 2_500_000),
            (mine, 20_000 * DAY + 23 * 3_600_000, "small", None),
            (theirs, 20_001 * DAY, "big", 1_000_000),
            (third, 20_002 * DAY, "small", None),
        ]
        for row in rows:
            await store.write(_use, *row)
        period = {"since": "2024-10-01", "until": "2024-12-01"}

        async def by(name: str, **more: object) -> dict[str, tuple[int, float | None]]:
            found = await office.get("usage", by=name, **period, **more)
            assert found["total"]["turns"] == sum(one["turns"] for one in found["items"]) == 4
            assert (found["total"]["cost"], found["total"]["unpriced"]) == (3.5, 2)
            assert found["total"]["cached_tokens"] == 160
            assert found == await office.call("usage.summary", by=name, **period, **more)
            return {one["key"]: (one["input_tokens"], one["cost"]) for one in found["items"]}

        days = {"2024-10-04": (200, 2.5), "2024-10-05": (100, 1.0), "2024-10-06": (100, None)}
        assert await by("day") == days
        assert list(await by("day", offset=60)) == ["2024-10-04", "2024-10-05", "2024-10-06"]
        assert (await by("day", offset=60))["2024-10-05"] == (200, 1.0)
        assert await by("model") == {"big": (200, 3.5), "small": (200, None)}
        assert await by("conversation") == {
            mine: (200, 2.5),
            theirs: (100, 1.0),
            third: (100, None),
        }
        channels = {"local": (200, 2.5), "webhook": (100, 1.0), "work": (100, None)}
        assert await by("channel") == channels
        assert list(await by("person")) == ["local", scope_of(ANN), scope_of(other)]
        later = await office.get("usage", since="2024-10-06T00:00:00Z", until="2024-10-07")
        assert later["total"]["requests"] == 1
        assert (await office.get("usage"))["items"] == [], "the last 30 days"
        for wrong in ("since=yesterday", "by=week", "since=2024-10-02&until=2024-10-01"):
            assert (await office.http.get(f"/api/usage?{wrong}")).status_code == 400, wrong


async def test_the_command_line_prints_the_same_sums(
    tmp_path: Path, store_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with opened(tmp_path, store_url, channel=False) as office:
        talk = (await office.world.say("a: ")).conversation_id
        await office.world.engine.wait_until_idle()
        await office.world.means.store.write(_use, talk, 20_000 * DAY, "big", 1_500_000)
        found = await office.get("usage", by="model", since="2024-10-01", until="2024-12-01")
    args = ["usage", "--by", "model", "--since", "2024-10-01", "--until", "2024-12-01"]
    command = ["--home", str(tmp_path), "--set", f"store.url={store_url}"]

    async def run(*more: str) -> tuple[int, str, str]:
        code = await asyncio.to_thread(run_command, [*command, *args, *more])
        told, error = capsys.readouterr()
        return code, told, error

    capsys.readouterr()
    _, told, _ = await run("--json")
    assert json.loads(told)["items"] == found["items"]
    _, told, _ = await run()
    lines = [line.split() for line in told.splitlines()]
    assert lines[1:] == [
        ["big", "1", "1", "100", "40", "10", "$1.5000"],
        ["total", "1", "1", "100", "40", "10", "$1.5000"],
    ]
    code, _, error = await run("--until", "tomorrow")
    assert (code, "2026-01-31" in error) == (2, True)


GIVEN: Mapping[str, Mapping[str, object]] = {
    "delivery.retry": {"delivery": "dlv_1"},
    "delivery.give_up": {"delivery": "dlv_1"},
    "person.let_in": {"code": "ABCD-EFGH"},
    "person.shut_out": {"user": "42"},
}


async def test_a_client_of_one_person_has_no_operation_of_operators(
    tmp_path: Path, store_url: str
) -> None:
    assert set(OPERATIONS) == set(admin.OPERATIONS)
    async with opened(tmp_path, store_url, channel=False) as office:
        guest = make_context(office.world, office.settings, viewer=scope_of(ANN))
        transport = httpx2.ASGITransport(app=build_app(guest))
        own: Any = {"base_url": "http://localhost", "headers": BEARER, "timeout": 60}
        async with (
            client(in_process(serve_over(guest))) as rpc,
            httpx2.AsyncClient(transport=transport, **own) as http,
        ):
            for operation in OPERATIONS.values():
                await check_refused(operation, rpc, http)


async def check_refused(operation: AnyOperation, rpc: RpcClient, http: httpx2.AsyncClient) -> None:
    given = GIVEN.get(operation.name, {})
    with pytest.raises(CallFailed) as refused:
        await rpc.call(operation.definition, operation.definition.params.model_validate(given))
    assert refused.value.code == ErrorCode.METHOD_NOT_FOUND, operation.name
    (binding,) = operation.bindings
    path = binding.path.replace("{delivery}", "dlv_1")
    answer = await http.request(binding.method, path, json={**given})
    assert answer.status_code == 404, operation.name
