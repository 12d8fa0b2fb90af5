"""Processes on every front: the tool of the model, ``/ps``, HTTP, JSON-RPC and ``clew ps``."""

from __future__ import annotations

import json
from socket import gethostname
from typing import TYPE_CHECKING, Any

import httpx2

from clew.commands.runner import CommandRunner
from clew.core.route import Route
from clew.core.scope import scope_of
from clew.features import shell
from clew.features.shell.process_tool import make_process_facts
from clew.plugin.registry import Features
from clew.runtime import make_command_registry
from clew.testing import Calls, FakeProvider, ScriptedCall, Text
from clew.wire.framing import RpcRequest, write_message
from tests.acceptance.program import Clew, until
from tests.features.process_world import CHAT, open_processes, shell_call
from tests.sandboxes import needs_bubblewrap
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from clew.testing import ProviderRequest, Reply

pytestmark = needs_bubblewrap


def answer_by_message(request: ProviderRequest) -> Reply:
    """Call what the message says, as JSON; repeat the results."""
    last = request.messages[-1]
    if last.results:
        return Text("\n".join(result.text for result in last.results))
    if not last.text.startswith("{"):
        return Text("noted")
    said = json.loads(last.text)
    return Calls((ScriptedCall(said.pop("tool", "process"), said),))


async def test_the_model_feeds_reads_and_stops_its_commands(tmp_path: Path, store_url: str) -> None:
    async with open_processes(tmp_path, store_url, answer_by_message) as world:

        async def call(route: Route = CHAT, **args: object) -> str:
            accepted = await world.engine.submit(json.dumps(args), target=route)
            return (await world.engine.wait_for_input(accepted)).text

        assert await call(action="list") == "There are none."
        reads = "echo begun; read -r line; echo got $line; sleep 600"
        await call(tool="shell", command=reads, background=True)
        [process] = await world.list()
        assert await call(action="input", id=process.id, text="water\n") == "Sent."
        folder = world.folder_of(process)
        await wait_until(lambda: folder.read_output(100) == "begun\ngot water\n")
        told = await call(action="read", id=process.id, start=6, length=3)
        assert told == f"got\n[running on {gethostname()}; bytes 6 to 9 of 16]"
        assert process.id in await call(action="list")
        other = Route(platform="telegram", kind="dm", chat="43")
        assert "no process" in (await call(other, action="read", id=process.id)).lower()
        stopped = await call(action="stop", id=process.id[:9])
        assert stopped.startswith("begun\ngot water\n[stopped by the agent, ")
        assert await call(action="stop", id=process.id) == stopped
        assert "it has ended" in await call(action="input", id=process.id, text="more\n")
        await world.watcher.look()
        await world.quiet()
        assert await world.completions() == [], "the call has told it"


async def test_input_of_a_command_on_the_host_is_decided_about_as_a_command() -> None:
    facts = await make_process_facts({"action": "list"})
    assert facts is not None
    assert facts.internal


async def test_a_person_lists_shows_and_stops_commands_in_the_chat(
    tmp_path: Path, store_url: str
) -> None:
    features = Features()
    features.register("shell", shell.register)
    async with open_processes(tmp_path, store_url, answer_by_message) as world:
        runner = CommandRunner(world.engine, make_command_registry(features))

        async def say(text: str, at: Route = CHAT) -> str:
            return (await runner.run_command(text, target=at, viewer=scope_of(at))).text

        await world.say("hello")
        assert await say("/ps") == "No commands run here, and none have."
        call = shell_call("echo begun; sleep 600", background=True)
        await world.say(json.dumps({"tool": "shell", **call.args}))
        [process] = await world.list()
        assert (await say("/ps")).startswith(f"{process.id}  'echo begun; sleep 600': running on ")
        await wait_until(lambda: world.folder_of(process).measure_output())
        assert (await say(f"/ps {process.id}")).endswith("UTC\nbegun")
        stranger = Route(platform="telegram", kind="dm", chat="43")
        await world.say("hello", stranger)
        assert "there is no process" in (await say(f"/ps stop {process.id}", stranger)).lower()
        assert await say(f"/ps stop {process.id}") == f"{process.id} is being stopped."
        [ended] = await world.look_until_ended()
        assert ended.why == "stopped by a person (/ps stop)"
        assert "It has ended already" in await say(f"/ps stop {process.id}")
        await world.quiet()
        assert len(await world.completions()) == 1


def test_programs_and_the_command_line_manage_commands(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text('[api]\ntoken = "s3cret"\n', encoding="utf-8")
    headers = {"Authorization": "Bearer s3cret"}
    with FakeProvider(answer_by_message) as provider:
        clew = Clew(
            home,
            {
                "CLEW_MODEL__NAME": "openai-chat:fake-model",
                "CLEW_MODEL__BASE_URL": provider.openai_url,
            },
        )
        with (
            clew.serving() as (url, _),
            httpx2.Client(base_url=url, headers=headers, timeout=60) as http,
        ):
            for command in ("read -r line; echo got $line", "echo begun; sleep 600"):
                said = {"tool": "shell", "command": command, "background": True}
                http.post(
                    "/v1/chat/completions",
                    json={"messages": [{"role": "user", "content": json.dumps(said)}]},
                )
            items = http.get("/api/processes").json()["items"]
            slow, reading = (one["id"] for one in items)
            http.post(f"/api/processes/{reading}/input", json={"text": "water\n"})
            until(lambda: http.get(f"/api/processes/{reading}").json()["state"] == "exited")
            found = http.get(f"/api/processes/{reading}").json()
            assert (found["ending"], found["tail"]) == ("exit code 0", "got water\n")
            part = http.get(f"/api/processes/{slow}/output?start=0&length=3").json()
            assert part == {"start": 0, "end": 3, "size": 6, "text": "beg"}
            assert http.get("/api/processes/prc_none").status_code == 404
        # The gateway is gone, the command is not.
        listed = {one["id"]: one["state"] for one in clew.data("ps", "list")["items"]}
        assert listed == {slow: "running", reading: "exited"}
        assert clew.ok("ps", "output", slow) == "begun\n"
        assert "got water" not in clew.ok("ps", "show", reading)
        frames = [
            RpcRequest(id=1, method="process.stop", params={"process": slow}),
            RpcRequest(id=2, method="process.stop", params={"process": reading}),
        ]
        lines = clew.ok("rpc", text="\n".join(map(write_message, frames))).splitlines()
        told: dict[int, Any] = {one["id"]: one for one in map(json.loads, lines)}
        assert told[1]["result"]["id"] == slow
        assert "ended already" in told[2]["error"]["message"]
        with clew.serving():
            until(lambda: clew.data("ps", "show", slow)["state"] == "stopped")
        assert "stopped by a person (process.stop)" in clew.ok("ps", "list")
