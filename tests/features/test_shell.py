"""The tools that run commands: what the model is told of them, and what they can reach."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from clew.features import shell as feature
from clew.features.shell.commands import check_argument
from clew.features.shell.wording import clean_output
from clew.sandbox.errors import SandboxError
from clew.testing import Calls, ScriptedCall, Text
from tests.features.killed_commands import (
    RUNNING,
    find_processes,
    kill_in_a_command,
)
from tests.features.test_turn_context import ROUTE, call, open_engine, say
from tests.sandboxes import needs_bubblewrap, needs_landlock
from tests.waiting import wait_until

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.engine.engine import Engine
    from clew.testing import FakeProvider

pytestmark = needs_bubblewrap


def told(provider: FakeProvider) -> list[str]:
    """The results of all calls, as the model was told them."""
    sent: dict[str, Any] = provider.requests[-1].json or {}
    return [each["content"] for each in sent["messages"] if each["role"] == "tool"]


def offered(provider: FakeProvider) -> set[str]:
    """The tools of the last request."""
    sent: dict[str, Any] = provider.requests[-1].json or {}
    return {each["function"]["name"] for each in sent.get("tools", ())}


async def ask(home: Path, *calls: ScriptedCall, level: str = "work") -> list[str]:
    """The results of calls of one step."""
    replies = (Calls(calls), Text("done"))
    async with open_engine(home, feature.register, *replies, sandbox_level=level, name="shell") as (
        engine,
        fake,
    ):
        await say(engine, "hello")
        return told(fake)


def shell(command: str, *, name: str | None = None, **more: object) -> ScriptedCall:
    return ScriptedCall("shell", {"command": command, **more}, id=name)


def python(code: str) -> ScriptedCall:
    return ScriptedCall("run_python", {"code": code})


async def test_commands_of_a_turn_share_a_workspace_and_tell_how_they_ended(tmp_path: Path) -> None:
    first = (
        shell("echo one; echo two >&2; echo three; cd /; pwd > ~/where; exit 3"),
        python("import sys\nprint('out')\nprint('err', file=sys.stderr)\nprint(1 / 0)"),
        shell("sleep 60", seconds=1),
        shell("true"),
        shell(r"printf 'a\xff\x1b[31mred\x1b[0m 1%%\r2%%\n'; kill -9 $$"),
        shell("exec cat"),
        shell("[[ $CLEW_SESSION_ID && $CLEW_SESSION_ID == $HERMES_SESSION_ID ]] && echo same"),
    )
    one, two, three, four, five, six, seven = await ask(tmp_path, *first)
    assert one.startswith("one\ntwo\nthree\n[exit code 3, ")
    assert two.startswith("out\nerr\nTraceback")
    assert "ZeroDivisionError: division by zero\n[exit code 1, " in two
    assert three.startswith("[stopped after 1 seconds, ")
    assert four.startswith("[exit code 0, ")
    assert four.endswith(" s, no output]")
    assert five.startswith("2%\n[exit code 137 (killed by SIGKILL), ")
    assert six.startswith("[exit code 0, "), "its input is empty"
    assert seven.startswith("same\n[exit code 0, ")
    [where] = (tmp_path / "work").glob("*/where")
    assert where.read_text() == "/\n"


async def test_an_argument_that_no_process_can_take_is_refused_in_a_sentence(
    tmp_path: Path,
) -> None:
    refused = (
        (shell("echo a\0b"), "error: command holds the character NUL: leave it out"),
        (shell("  \n"), "error: command is empty"),
        (python("x" * 100_001), "error: code has 100,001 bytes, and 100,000 are allowed: "),
    )
    for (_, sentence), result in zip(
        refused, await ask(tmp_path, *(c for c, _ in refused)), strict=True
    ):
        assert result.startswith(sentence)
    for text in ("a\0b", " ", "é" * 50_001, "\udfff"):
        with pytest.raises(SandboxError):
            check_argument("command", text)
    long = await ask(tmp_path, shell("echo " + "'é'" * 20_000 + " | wc -c"))
    assert long[-1].startswith("40001\n[exit code 0, ")


async def test_a_command_reaches_nothing_of_the_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-gateway")
    (tmp_path / "config.toml").write_text("# settings of the person\n")
    home = Path.home()
    hostile = (
        f"cat {tmp_path}/clew.db {tmp_path}/config.toml {home}/.ssh/* /root/.bashrc; ls {home}",
        "env; cat /proc/*/environ | tr '\\0' '\\n'",
        "ls /proc/self/fd; (exec 3<>/dev/tcp/127.0.0.1/22) && echo CONNECTED",
        "'; echo $(id) `id` \"; $(kill -9 1)' \nkill -9 -1",
        "cat <<'END' | sh\nkill -9 $PPID; ln -s / root; cat root/etc/shadow\nEND",
        f"ln -sfn {tmp_path} ~/home; cat ~/home/config.toml; echo x > ~/home/new",
    )
    results = await ask(tmp_path, *(shell(command) for command in hostile))
    all_told = "\n".join(results)
    for secret in ("sk-of-the-gateway", "settings of the person", "SQLite", "CONNECTED", "root:"):
        assert secret not in all_told
    assert {"PATH", "HOME", "LANG"} <= {line.split("=")[0] for line in results[1].splitlines()}
    assert results[2].splitlines()[0:4] == ["0", "1", "2", "3"], "nothing is inherited"
    assert not (tmp_path / "new").exists()


async def test_long_output_is_kept_and_shown_at_both_ends(tmp_path: Path) -> None:
    replies = (
        Calls((shell("seq 1 30000", name="long"),)),
        call("read_result", call_id="long", start=80_000, length=20),
        Text("done"),
    )
    async with open_engine(tmp_path, feature.register, *replies, name="shell") as (engine, fake):
        await say(engine, "hello")
        shown, middle = told(fake)
    assert shown.startswith("1\n2\n3\n")
    assert "characters left out" in shown
    assert "30000\n[exit code 0, " in shown
    assert len(shown) < 61_000
    whole = "\n".join(map(str, range(1, 30_001)))
    assert whole[80_000:80_020] in middle


async def test_stopping_a_turn_ends_its_command_and_all_that_it_started(tmp_path: Path) -> None:
    marks = [f"clew-{tmp_path.name}-{kind}-{os.getpid()}" for kind in ("shell", "python")]
    commands = (
        shell(f": {marks[0]}; touch a; setsid sleep 600 & sleep 600"),
        python(f"'{marks[1]}'; open('b', 'w'); import time; time.sleep(600)"),
    )
    async with open_engine(tmp_path, feature.register, Calls(commands), name="shell") as (
        engine,
        _,
    ):
        conversation = await submit(engine)
        await wait_until(lambda: len([*(tmp_path / "work").glob("*/[ab]")]) == 2)
        assert all(find_processes(mark) for mark in marks)
        assert await engine.request_stop(conversation)
        await wait_until(lambda: not any(find_processes(mark) for mark in marks))


async def submit(engine: Engine) -> ConversationId:
    """Type a message, without waiting for the answer."""
    return (await engine.submit("hello", target=ROUTE)).conversation_id


async def test_without_a_sandbox_the_tools_are_not_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = (Text("one"),) * 3
    async with open_engine(tmp_path / "a", feature.register, *replies, name="shell") as (
        engine,
        fake,
    ):
        await say(engine, "hello")
        assert offered(fake) == {"shell", "run_python", "process", "read_result"}
    monkeypatch.setenv("PATH", str(tmp_path))
    async with open_engine(
        tmp_path / "b", feature.register, *replies, sandbox_level="box", name="shell"
    ) as (
        engine,
        fake,
    ):
        await say(engine, "hello")
        assert not offered(fake), "there is no docker"


@needs_landlock
async def test_without_bubblewrap_the_next_sandbox_runs_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.toml").write_text("# settings of the person\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    one, two, three = await ask(
        tmp_path,
        shell("echo kept > file; cat file; echo $HERMES_SESSION_ID"),
        python(f"print(open('{tmp_path}/config.toml').read())"),
        python("import socket; socket.create_connection(('127.0.0.1', 22))"),
    )
    assert one.startswith("kept\n20")
    assert "PermissionError" in two
    assert "[exit code 1, " in two
    assert "Error" in three
    assert "[exit code 1, " in three


async def test_on_the_host_each_command_asks(tmp_path: Path) -> None:
    replies = (Calls((shell("echo out of the box", name="c1"),)), Text("done"))
    async with open_engine(
        tmp_path, feature.register, *replies, sandbox_level="host", name="shell"
    ) as (
        engine,
        fake,
    ):
        conversation = await submit(engine)
        [question] = await wait_until(lambda: engine.list_approvals(conversation))
        assert question.tool == "shell"
        await engine.answer_approval(question.id, yes=True, by="tester")
        await engine.wait_until_idle()
        assert told(fake)[0].startswith("out of the box\n[exit code 0, ")


async def test_the_tools_take_little_of_each_request(tmp_path: Path) -> None:
    async with open_engine(tmp_path, feature.register, Text("done"), name="shell") as (
        engine,
        fake,
    ):
        await say(engine, "hello")
        sent: dict[str, Any] = fake.requests[-1].json or {}
        mine = [each for each in sent["tools"] if each["function"]["name"] != "read_result"]
        assert len(json.dumps(mine)) <= 1_900


def test_facts_say_what_a_command_can_reach(tmp_path: Path) -> None:
    facts = feature.make_facts({"command": "ls"})
    assert (facts.command, facts.sandbox, facts.network) == ("ls", None, True), "not in a turn"
    assert clean_output("1%\r2%\x1b]0;title\x07\r\nx") == "2%\nx"


@pytest.mark.parametrize(
    "place", [RUNNING, "journal.record_intent after", "processes.settle_process inside"]
)
def test_a_call_gets_the_output_of_its_command_although_the_gateway_was_killed(
    tmp_path: Path, store_url: str, place: str
) -> None:
    outcome = kill_in_a_command(tmp_path, store_url, place)
    assert outcome.is_right, outcome
