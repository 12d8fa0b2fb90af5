"""
Generate conversations with the real Codex, for ``tests/foreign/samples/codex``.

``python -m tests.foreign.generate_codex PROGRAM HOME PROJECT``: 50 sessions of one to three turns
with tool calls; some are resumed, compacted by a small context window, or killed in mid turn.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from clew.testing.provider.replies import Text
from clew.testing.provider.server import FakeProvider
from tests.foreign.driven import run_turn
from tests.foreign.scripted_model import USAGE, follow_plan

SETTINGS = """model = "fake-model"
model_provider = "fake"
model_context_window = {window}
model_auto_compact_token_limit = {limit}
[model_providers.fake]
name = "Fake"
base_url = "{url}/v1"
env_key = "FAKE_KEY"
wire_api = "responses"
"""
CALLS = '<<[[["exec_command", {"cmd": "echo %d"}], ["exec_command", {"cmd": "false"}]], "Ran."]>>'
HANGS = '<<[[["exec_command", {"cmd": "echo 1"}]], {"hang": true}]>>'


class Codex:
    """The program, as it is run for each turn."""

    def __init__(self, url: str) -> None:
        self._program, self._home, self._project = sys.argv[1:4]
        self._url = url
        self._environment = os.environ | {"HOME": self._home, "FAKE_KEY": "of-no-use"}

    def set_limit(self, limit: int) -> None:
        """Write the settings, with the tokens after which it compacts."""
        folder = Path(self._home, ".codex")
        folder.mkdir(parents=True, exist_ok=True)
        text = SETTINGS.format(url=self._url, window=128000, limit=limit)
        (folder / "config.toml").write_text(text, encoding="utf-8")

    def say(self, *words: str, timeout: float = 60) -> None:
        """Run one turn; kill it if it takes longer than it may."""
        flags = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        run_turn(
            [self._program, "exec", *flags, *words],
            environment=self._environment,
            folder=self._project,
            seconds=timeout,
        )


def main() -> None:
    """Hold the conversations."""
    with FakeProvider(
        lambda request: follow_plan(request) if request.messages else Text("", usage=USAGE),
        strict=False,
    ) as provider:
        codex = Codex(provider.url)
        for number in range(50):
            codex.set_limit(100_000)
            plan = CALLS % number if number % 3 else ""
            codex.say(f"Question of {number}. {plan}")
            if number % 4 == 0:
                codex.say("resume", "--last", f"More of {number}. {CALLS % number}")
            if number % 10 == 4:
                codex.set_limit(10)
                codex.say("resume", "--last", f"After {number}. {CALLS % number}")
            if number % 25 == 6:
                codex.say("resume", "--last", f"Killed. {HANGS}", timeout=6)
                codex.say("resume", "--last", "Go on.")


if __name__ == "__main__":
    main()
