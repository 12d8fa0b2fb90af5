"""
Generate conversations with the real OpenClaw, for ``tests/foreign/samples/openclaw``.

``python -m tests.foreign.generate_openclaw PROGRAM HOME [COUNT]``: PROGRAM is the installed
``openclaw``, HOME an empty folder that becomes its home. It serves a model on loopback, starts the
gateway and talks to it over its chat completions endpoint: COUNT (50) sessions of one to three
turns, some with tool calls, one killed in mid turn; and it schedules three jobs.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from clew.testing.provider.server import FakeProvider
from tests.foreign.scripted_model import follow_plan

PORT = int(os.environ.get("OPENCLAW_PORT", "18290"))
TOKEN = "for-this-run-only"
CALLS = '<<[[["exec", {"command": "echo %d"}], ["exec", {"command": "false"}]], "Both ran."]>>'


def write_settings(home: Path, url: str) -> None:
    """Write the settings: one model on loopback, and the endpoint that this program talks to."""
    model = {"id": "fake-model", "name": "Fake", "contextWindow": 128000, "maxTokens": 4096}
    settings = {
        "models": {
            "providers": {
                "fake": {
                    "baseUrl": f"{url}/v1",
                    "apiKey": "of-no-use",
                    "api": "openai-completions",
                    "models": [model],
                }
            }
        },
        "agents": {
            "defaults": {"model": {"primary": "fake/fake-model"}, "userTimezone": "Europe/Berlin"}
        },
        "channels": {"telegram": {"enabled": False, "allowFrom": ["42", "77"]}},
        "gateway": {
            "mode": "local",
            "port": PORT,
            "bind": "loopback",
            "auth": {"mode": "token", "token": TOKEN},
            "http": {"endpoints": {"chatCompletions": {"enabled": True}}},
        },
    }
    folder = home / ".openclaw"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "openclaw.json").write_text(json.dumps(settings), encoding="utf-8")


def post(key: str, text: str, *, timeout: float = 180) -> bytes:
    """Send one message of a person to a session, and return the answer."""
    to = http.client.HTTPConnection("127.0.0.1", PORT, timeout=timeout)
    body = {"model": "openclaw", "messages": [{"role": "user", "content": text}]}
    headers = {
        "Authorization": f"Bearer {TOKEN}",
        "Content-Type": "application/json",
        "x-openclaw-session-key": key,
    }
    to.request("POST", "/v1/chat/completions", json.dumps(body), headers)
    return to.getresponse().read()


def name_session(number: int) -> str:
    """Return keys of chats, groups, topics, channels and plain names in turn."""
    return (
        f"agent:main:telegram:direct:{number}",
        f"agent:main:telegram:group:-100{number}:topic:7",
        f"agent:main:discord:channel:{number}",
        f"agent:main:task-{number}",
    )[number % 4]


def talk(count: int) -> None:
    """Hold the conversations."""
    for number in range(count):
        for turn in range(1 + number % 3):
            plan = CALLS % number if (number + turn) % 2 else ""
            post(name_session(number), f"Question {turn} of chat {number}. {plan}")
    try:
        post(name_session(count), 'Wait. <<[[["exec", {"command": "echo 1"}]], {"hang": true}]>>',
             timeout=20)  # fmt: skip
    except TimeoutError:
        pass


def schedule(program: str, environment: dict[str, str]) -> None:
    """Schedule jobs, as people do."""
    for words in (
        ["--name", "Water", "--cron", "0 8 * * *", "--tz", "Europe/Berlin", "--session", "isolated",
         "--message", "Water the roses."],
        ["--name", "Look", "--every", "2h", "--session", "isolated", "--message", "Look at them."],
        ["--name", "Prune", "--at", "2027-03-01T08:00:00Z", "--session", "main",
         "--system-event", "Prune the roses."],
    ):  # fmt: skip
        subprocess.run([program, "cron", "add", *words], env=environment, check=False, timeout=180)


def main() -> None:
    """Start the gateway, talk, and kill it in mid turn."""
    program, home = sys.argv[1], Path(sys.argv[2])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 50
    with FakeProvider(follow_plan, strict=False) as provider:
        write_settings(home, provider.url)
        environment = os.environ | {"HOME": str(home)}
        gateway = subprocess.Popen([program, "gateway"], env=environment, start_new_session=True)
        try:
            for _ in range(120):
                time.sleep(2)
                try:
                    post("agent:main:main", "Are you there?")
                    break
                except OSError:
                    continue
            schedule(program, environment)
            talk(count)
        finally:
            os.killpg(gateway.pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
