"""JSON-RPC as programs use it: from the description alone, over both transports, past kills."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from clew.tui.transports import pipes, websocket
from tests import forking
from tests.acceptance.blind import TOOLS, Blind, blind
from tests.acceptance.typed import programs
from tests.databases import ON_POSTGRES
from tests.screens.evening import spend

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager

    from clew.tui.transports import Connect
    from tests.acceptance.program import Clew

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-client.md"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@contextmanager
def _over_socket(clew: Clew) -> Generator[Connect]:
    with clew.with_env({"CLEW_API__TOKEN": "s3cret"}).serving() as (url, _):
        yield websocket(f"{url.replace('http', 'ws', 1)}/api/ws", token="s3cret")


@contextmanager
def _over_pipes(clew: Clew) -> Generator[Connect]:
    environ = [f"{name}={text}" for name, text in clew.environ.items()]
    with programs() as folder:
        yield pipes(["env", *environ, str(folder / "clew"), "rpc"])


@pytest.mark.parametrize(
    ("durable", "over"),
    [
        ("sqlite", _over_pipes),
        pytest.param("postgres", _over_socket, marks=pytest.mark.postgres),
    ],
    indirect=["durable"],
)
async def test_a_client_that_knows_only_the_description_can_do_everything(
    durable: Clew, over: Callable[[Clew], AbstractContextManager[Connect]]
) -> None:
    plugins = durable.home / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "handy.py").write_text(TOOLS, encoding="utf-8")
    with over(durable.with_env({"CLEW_TOOLS__MODULES": '["handy"]'})) as connect:
        async with blind(connect) as client:
            await _everything(client)


def _closed(event: dict[str, Any]) -> bool:
    return event["type"] == "turn_closed"


async def _everything(client: Blind) -> None:
    opened = await client.call("conversation.open", conversation="talk")
    here, session = opened["conversation"]["id"], opened["state"]["head_session"]
    await client.call("events.subscribe", conversation=here, after=0)

    await client.call("prompt.submit", session_id=session, text="hello there")
    assert (await client.until(_closed))[-1]["outcome"] == "answered"

    await client.call("prompt.submit", session_id=session, text="call linger")
    await client.until(lambda event: event["type"] == "tool")
    assert (await client.call("turn.interrupt", conversation=here))["stopping"]
    assert (await client.until(_closed))[-1]["outcome"] == "cancelled"

    await client.call("prompt.submit", session_id=session, text='call pay {"amount": 5}')
    asked = (await client.until(lambda event: event.get("state", {}).get("approvals")))[-1]
    (question,) = asked["state"]["approvals"]
    await client.call("approval.respond", approval=question["id"], approve=True)
    told = await client.until(_closed)
    assert any("paid 5" in event.get("text", "") for event in told if event["type"] == "entry")

    named = await client.call("conversation.rename", conversation=here, title="Payments")
    assert named["title"] == "Payments"
    copy = await client.call("conversation.branch", conversation=here, at=2, title="Copy")
    assert copy["origin"] == {"id": here, "seq": 2}
    back = await client.call("conversation.rewind", conversation=here, to=2)
    assert back["session"] != session
    # The old session still means the conversation (S1.3).
    again = await client.call("prompt.submit", session_id=session, text="what did I say?")
    assert (again["conversation"], again["session"]) == (here, back["session"])
    told = await client.until(_closed)
    assert {event["session"] for event in told if event["type"] == "turn_begun"} == {
        back["session"]
    }
    # A state may be told between the answer and the end of its turn.
    answer = [event for event in told if event["type"] == "entry"][-1]
    assert answer["text"] == "You told me: hello there"
    hits = await client.call("conversation.search", query="paid")
    assert {hit["conversation"] for hit in hits["items"]} == {here}
    await _resumed(client, here, last=told[-1]["seq"])


async def _resumed(client: Blind, conversation: str, *, last: int) -> None:
    """From every seq the rest comes, once and in order."""
    for after in range(last):
        await client.call("events.subscribe", conversation=conversation, after=after)
        # Events before the response belong to the previous subscription.
        client.heard.clear()
        told = await client.until(lambda event: event["seq"] == last)
        entries = [event["seq"] for event in told if event["type"] == "entry"]
        assert entries == list(range(after + 1, last + 1))
    ahead = await client.fail("events.subscribe", conversation=conversation, after=last + 1)
    assert ahead["data"]["param"] == "after"


def test_the_client_of_the_page_prints_what_the_page_says(clew: Clew, tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    program = tmp_path / "client.py"
    program.write_text(code, encoding="utf-8")
    with clew.serving() as (url, _):
        environ = {**clew.environ, "CLEW_SOCKET": f"{url.replace('http', 'ws', 1)}/api/ws"}
        done = forking.run(
            [str(program)], environ=environ, within=60, program="tests.forking:script"
        )
    assert (done.stdout, done.stderr) == ("You said: hello there\n", "")


def test_clew_rpc_attaches_to_the_server_that_runs_and_works_by_itself_when_it_is_gone(
    clew: Clew,
) -> None:
    asked = '{"jsonrpc": "2.0", "id": 1, "method": "config.get", "params": {"key": "api.port"}}\n'
    with ExitStack() as stack:
        _, server = stack.enter_context(clew.serving())
        # Input that ends is answered first.
        (setting,) = json.loads(clew.ok("rpc", text=asked))["result"]["items"]
        assert setting["value"] == 0
        piped = stack.enter_context(clew.started("rpc", piped=True))
        assert piped.stdin is not None
        assert piped.stdout is not None
        piped.stdin.write(asked)
        piped.stdin.flush()
        # The server's own setting: only it was told another port.
        (setting,) = json.loads(piped.stdout.readline())["result"]["items"]
        assert setting["value"] == 0
        server.kill()
        assert piped.wait(timeout=60) == 1
        _, said = piped.communicate()
        assert "the server has stopped" in said
    (setting,) = json.loads(clew.ok("rpc", text=asked))["result"]["items"]
    assert setting["value"] == 8420


@pytest.mark.parametrize("durable", ON_POSTGRES, indirect=True)
def test_three_screens_show_the_same_in_the_same_order_past_a_killed_server(durable: Clew) -> None:
    evening = spend(durable, messages=4, kills=1)
    assert [screen.seen.wrong for screen in evening.screens] == [0, 0, 0]
    assert [screen.seen.resumed > 0 for screen in evening.screens] == [True, True, True]
    assert all(screen.seen.pieces for screen in evening.screens)
    assert (evening.missing, evening.unanswered, evening.different) == (0, 0, 0)
