"""Goals on every front: HTTP, JSON-RPC, ``clew goal``, and a chat without a gateway."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2

from clew.commands.runner import CommandRunner
from clew.core.route import local_route
from clew.core.scope import LOCAL
from clew.plugin.loading import load_settings_with_features
from clew.runtime import open_application
from clew.wire.framing import RpcRequest, write_message
from tests.acceptance.program import Clew, until
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path


def test_programs_and_the_command_line_set_and_change_goals(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(
        '[api]\ntoken = "s3cret"\n[goals]\nrounds = 2\n', encoding="utf-8"
    )
    clew = Clew(home, {"CLEW_MODEL__NAME": "offline"})
    missing = clew.run("goal", "set", "main", "water it all")
    assert missing.code == 2
    headers = {"Authorization": "Bearer s3cret"}
    with (
        clew.serving() as (url, _),
        httpx2.Client(base_url=url, headers=headers, timeout=60) as http,
    ):
        clew.ok("chat", "-c", "main", "hello")
        # Set by a process of its own: the gateway goes on with it.
        made = clew.data("goal", "set", "main", "water it all")
        assert (made["state"], made["max_rounds"], made["rounds"]) == ("active", 2, 0)

        def is_paused() -> bool:
            return http.get(f"/api/goals/{made['id']}").json()["state"] == "paused"

        until(is_paused)
        found = clew.data("goal", "show", "main")
        assert (found["rounds"], found["reason"]) == (2, "its rounds are used up")
        rounds = http.get("/api/goals/main/rounds").json()["items"]
        assert [(one["n"], one["state"]) for one in rounds] == [(2, "done"), (1, "done")]
        assert clew.data("goal", "rounds", made["id"]) == {"items": rounds}
        assert http.post("/api/goals/main/resume").json()["max_rounds"] == 4
        until(is_paused)
        second = http.post("/api/goals", json={"conversation": "main", "text": "b", "rounds": 1})
        assert second.json()["max_rounds"] == 1
        assert http.get("/api/goals/gol_none").status_code == 404
        assert http.post("/api/goals", json={"conversation": "main"}).status_code == 400
        assert [one["id"] for one in http.get("/api/goals").json()["items"]] == [
            second.json()["id"]
        ]
    calls = [("goal.get", "main"), ("goal.stop", "main"), ("goal.done", made["id"])]
    frames = [
        RpcRequest(id=n, method=method, params={"goal": name})
        for n, (method, name) in enumerate(calls)
    ]
    lines = clew.ok("rpc", text="\n".join(map(write_message, frames))).splitlines()
    told: dict[int, Any] = {one["id"]: one for one in map(json.loads, lines)}
    assert told[0]["result"]["text"] == "b"
    assert told[1]["result"]["state"] == "stopped"
    assert "stopped already" in told[2]["error"]["message"]
    assert clew.data("goal", "list") == {"items": []}
    states = [one["state"] for one in clew.data("goal", "list", "--ended")["items"]]
    assert states == ["stopped", "stopped"]


async def test_a_chat_without_a_gateway_goes_on_with_its_goal(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[goals]\nrounds = 2\n", encoding="utf-8")
    flags = {"model.name": "offline"}
    settings = load_settings_with_features(home=tmp_path, flags=flags, environ={})
    async with open_application(settings, role="chat", own_only=True) as product:
        runner = CommandRunner(product.engine, product.commands)
        # The first thing that is said in this conversation.
        reply = await runner.run_command("/goal water", target=local_route("main"), viewer=LOCAL)
        assert "at most 2 rounds" in reply.text

        async def is_paused() -> bool:
            reply = await runner.run_command("/goal", target=local_route("main"), viewer=LOCAL)
            return reply.text.startswith("The goal is paused, its rounds are used up.")

        await wait_until(is_paused)
        await product.engine.wait_until_idle()
