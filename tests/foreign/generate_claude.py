"""
Generate conversations with the real Claude Code, for ``tests/foreign/samples/claude``.

``python -m tests.foreign.generate_claude PROGRAM HOME PROJECT``: 50 sessions of one to three
turns with tool calls and a subagent; some are resumed, forked, compacted, or killed in mid turn.
"""

from __future__ import annotations

import os
import sys
from uuid import UUID

from clew.testing.provider.server import FakeProvider
from tests.foreign.driven import run_turn
from tests.foreign.scripted_model import follow_plan

CALLS = '<<[[["Bash", {"command": "echo %d"}], ["Bash", {"command": "false"}]], "Both ran."]>>'
TASK = (
    '<<[[["Task", {"description": "count", "prompt": "Count to three.", '
    '"subagent_type": "general-purpose"}]], "It counted."]>>'
)
HANGS = '<<[[["Bash", {"command": "echo 1"}]], {"hang": true}]>>'


class ClaudeCode:
    """The program, as it is run for each turn."""

    def __init__(self, url: str) -> None:
        self._program, home, self._project = sys.argv[1:4]
        self._environment = os.environ | {
            "HOME": home,
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "of-no-use",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",
        }

    def say(self, text: str, *options: str, timeout: float = 90) -> None:
        """Run one turn; kill it if it takes longer than it may."""
        command = [self._program, "-p", "--dangerously-skip-permissions", *options, text]
        run_turn(command, environment=self._environment, folder=self._project, seconds=timeout)


def main() -> None:
    """Hold the conversations."""
    with FakeProvider(follow_plan, strict=False) as provider:
        claude = ClaudeCode(provider.url)
        for number in range(50):
            session = str(UUID(int=(4 << 76) + (8 << 60) + number + 1))
            plan = (CALLS % number, "", TASK)[number % 3]
            claude.say(f"Question of {number}. {plan}", "--session-id", session)
            if number % 4 == 0:
                claude.say(f"More of {number}. {CALLS % number}", "--resume", session)
            if number % 10 == 4:
                claude.say("/compact", "--resume", session)
                claude.say(f"After {number}.", "--resume", session)
            if number % 10 == 5:
                claude.say(f"Fork of {number}.", "--resume", session, "--fork-session")
            if number % 25 == 6:
                claude.say(f"Killed. {HANGS}", "--resume", session, timeout=6)
                claude.say("Go on.", "--resume", session)


if __name__ == "__main__":
    main()
