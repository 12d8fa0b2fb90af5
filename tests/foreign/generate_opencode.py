"""
Generate conversations with the real OpenCode, for ``tests/foreign/samples/opencode``.

``python -m tests.foreign.generate_opencode PROGRAM HOME PROJECT [COUNT]``: COUNT (50) sessions of
one to three turns with tool calls, files and subagents; some are forked, compacted, reverted,
aborted, or killed with the program in mid turn. The HTTP API of ``opencode serve`` drives it.
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
from typing import Any
from urllib.parse import quote

from clew.testing.provider.server import FakeProvider
from tests.foreign.scripted_model import follow_plan

PORT = int(os.environ.get("OPENCODE_PORT", "18390"))
MODEL = {"providerID": "fake", "modelID": "fake-model"}
CALLS = (
    '<<[[["bash", {"command": "echo %d", "description": "say"}], '
    '["read", {"filePath": "missing.txt"}]], "Both ran."]>>'
)
TASK = (
    '<<[[["task", {"description": "count", "prompt": "Count to three.", '
    '"subagent_type": "general"}]], "It counted."]>>'
)
HANGS = '<<[[["bash", {"command": "echo 1", "description": "say"}]], {"hang": true}]>>'
SLOW = '<<[[["bash", {"command": "sleep 60", "description": "wait"}]]]>>'
PICTURE = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class OpenCode:
    """The program as a server, and its client."""

    def __init__(self, url: str) -> None:
        self._program, home, self._project = sys.argv[1:4]
        self._environment = os.environ | {
            "HOME": home,
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        }
        for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
            self._environment.pop(name, None)
        folder = Path(home, ".config", "opencode")
        folder.mkdir(parents=True, exist_ok=True)
        Path(self._project, "notes.txt").write_text("Roses grow here.\n", encoding="utf-8")
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{url}/v1", "apiKey": "of-no-use"},
            "models": {
                "fake-model": {
                    "limit": {"context": 128000, "output": 4096},
                    "attachment": True,
                    "modalities": {"input": ["text", "image"], "output": ["text"]},
                }
            },
        }
        settings = {"provider": {"fake": provider}, "model": "fake/fake-model"}
        settings |= {"autoupdate": False, "share": "disabled"}
        (folder / "opencode.json").write_text(json.dumps(settings), encoding="utf-8")
        self._server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server."""
        self._server = subprocess.Popen(
            [self._program, "serve", "--port", str(PORT), "--hostname", "127.0.0.1"],
            env=self._environment,
            cwd=self._project,
            start_new_session=True,
        )
        for _ in range(240):
            time.sleep(0.5)
            try:
                self.ask("GET", "/session")
                return
            except OSError:
                continue
        raise SystemExit("the server does not answer")

    def kill(self) -> None:
        """Kill the server with all that it has started."""
        if self._server is not None:
            os.killpg(self._server.pid, signal.SIGKILL)
            self._server.wait()

    def ask(self, method: str, path: str, body: object = None, *, timeout: float = 120) -> Any:
        """Send one request, and return the answer."""
        to = http.client.HTTPConnection("127.0.0.1", PORT, timeout=timeout)
        headers = {"Content-Type": "application/json"}
        where = f"{path}?directory={quote(self._project)}"
        to.request(method, where, None if body is None else json.dumps(body), headers)
        text = to.getresponse().read()
        try:
            return json.loads(text)
        except ValueError:
            return text.decode()

    def begin(self, title: str) -> str:
        """Begin a session."""
        return self.ask("POST", "/session", {"title": title})["id"]

    def say(self, session: str, text: str, *files: dict, timeout: float = 120) -> Any:
        """Run one turn; stop waiting if it takes longer than it may."""
        parts = [{"type": "text", "text": text}, *files]
        body = {"parts": parts, "model": MODEL, "agent": "build"}
        try:
            return self.ask("POST", f"/session/{session}/message", body, timeout=timeout)
        except TimeoutError:
            return None


def talk(opencode: OpenCode, number: int) -> None:
    """Hold one conversation."""
    session = opencode.begin(f"Garden {number}")
    plan = (CALLS % number, "", TASK)[number % 3]
    opencode.say(session, f"Question of {number}. {plan}")
    if number % 4 == 0:
        opencode.say(session, f"More of {number}. {CALLS % number}")
    if number % 10 == 1:
        picture = {"type": "file", "mime": "image/png", "filename": "rose.png", "url": PICTURE}
        opencode.say(session, "What is this?", picture)
    if number % 10 == 2:
        notes = Path(sys.argv[3], "notes.txt").as_uri()
        file = {"type": "file", "mime": "text/plain", "filename": "notes.txt", "url": notes}
        opencode.say(session, "What does it say?", file)
    if number % 10 == 3:
        fork = opencode.ask("POST", f"/session/{session}/fork", {})["id"]
        opencode.say(fork, f"Fork of {number}.")
    if number % 10 == 4:
        opencode.ask("POST", f"/session/{session}/summarize", MODEL)
        opencode.say(session, f"After {number}. {CALLS % number}")
    if number % 10 == 5:
        opencode.say(session, f"Killed. {HANGS}", timeout=8)
        opencode.kill()
        opencode.start()
        opencode.say(session, "Go on.")
    if number % 10 == 6:
        opencode.say(session, "Of no use.")
        said = opencode.ask("GET", f"/session/{session}/message")
        asked = [one["info"]["id"] for one in said if one["info"]["role"] == "user"]
        opencode.ask("POST", f"/session/{session}/revert", {"messageID": asked[-1]})
    if number % 10 == 7:
        opencode.say(session, f"Stop it. {SLOW}", timeout=6)
        opencode.ask("POST", f"/session/{session}/abort", {})
    if number % 10 == 8:
        opencode.ask(
            "POST",
            f"/session/{session}/shell",
            {"agent": "build", "command": "echo hello", "model": MODEL},
        )


def main() -> None:
    """Hold the conversations."""
    count = int(sys.argv[4]) if len(sys.argv) > 4 else 50
    with FakeProvider(follow_plan, strict=False) as provider:
        opencode = OpenCode(provider.url)
        opencode.start()
        try:
            for number in range(count):
                talk(opencode, number)
                sys.stdout.write(f"{number}\n")
        finally:
            opencode.kill()


if __name__ == "__main__":
    main()
