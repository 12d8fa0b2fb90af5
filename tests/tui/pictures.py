"""
The pictures of the terminal UI in README and docs.

``python -m tests.tui.pictures docs/images`` makes them; the test of them makes them, too.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.config.settings import ToolsSettings
from clew.testing import FakeProvider, Text
from clew.testing.provider import Calls, ScriptedCall, reply_by_user_text
from tests.integration.api_server import running, settings_for
from tests.tui.screen import at

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from clew.testing.provider import Script
    from tests.tui.screen import Seen

SIZE: Final = (100, 30)
#: A moment as the screens tell it, and the one that all pictures show.
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d(?:&#160;| )\d\d:\d\d")
_SHOWN: Final = "2026-11-28&#160;10:00"
#: The same without the day, and how long an answer took.
_TIME: Final = re.compile(r"(?<![\d:])\d\d:\d\d(?![\d:])")
_TOOK: Final = re.compile(r"\d+\.\d&#160;s(?=&#160;·)")
#: The names of an SVG's own parts: different numbers each time.
_OWN: Final = re.compile(r"terminal-\d+")

_ANSWER: Final = """\
He had **a clew**, the ball of thread that Ariadne gave him:

1. tie the end to the door
2. unwind it on the way in
3. follow it on the way out

```python
def way_out(thread: list[Turn]) -> list[Turn]:
    return [turn.back() for turn in reversed(thread)]
```
"""


def script() -> Script:
    """Return the answer of the agent in the pictures."""
    look = Calls(
        [ScriptedCall("look", {"where": "the labyrinth"})], thinking="The thread is in there."
    )
    return reply_by_user_text(
        {
            "How did Theseus find his way out?": Text(_ANSWER),
            "Look for it.": [look, Text("In the labyrinth there is a thread.")],
            "Pay the ferryman.": Calls([ScriptedCall("pay", {"amount": 3})]),
        },
        default=Text("As you say."),
    )


async def make(folder: Path, *, home: Path) -> None:
    """Make all pictures in a folder, of conversations in an empty ``home``."""
    async with _scene(home) as seen:
        await seen.say("How did Theseus find his way out?")
        await seen.see("follow it on the way out", "reversed")
        await seen.say("Look for it.")
        await seen.see("there is a thread", "▸ 3 lines")
        await _take(seen, folder, "chat")
        await seen.pilot.press("tab", "up", "enter")
        await seen.see("│ a thread")
        await _take(seen, folder, "tool")
        await seen.pilot.press("escape", "f4")
        await seen.see("tokens, ")
        await _take(seen, folder, "summary")
        await seen.pilot.press("escape", "tab", "r")
        await seen.see("Rewind to this message?")
        await seen.decide("y")
        await seen.see("rewound")
        await seen.pilot.press("f3")
        await seen.see("Sessions of this conversation", "Rewound to an earlier message")
        await _take(seen, folder, "lineage")
        await seen.pilot.press("escape")
        await seen.say("Pay the ferryman.")
        await seen.see("waiting for your approval")
        await seen.pilot.press("f7")
        await seen.see("Allow this tool call?", "amount:")
        await _take(seen, folder, "question")
        await seen.pilot.press("escape", "f2")
        await seen.see("Conversations", "● ")
        await _take(seen, folder, "conversations")
        await seen.pilot.press("escape", "escape")


@asynccontextmanager
async def _scene(home: Path) -> AsyncGenerator[Seen]:
    with FakeProvider(script()) as provider:
        settings = settings_for(home, provider=provider)
        settings = replace(
            settings,
            model=replace(settings.model, context_window=400),
            tools=ToolsSettings(modules=("tests.tui.tools",)),
        )
        async with running(settings) as server:
            await server.say("What does a clew cost?", "shopping")
            async with at(server, home, name="main", size=SIZE) as seen:
                yield seen


async def _take(seen: Seen, folder: Path, name: str) -> None:
    await seen.pilot.pause(0.2)
    svg = seen.app.export_screenshot(title="clew", simplify=True)
    plain = _OWN.sub("terminal", _MOMENT.sub(_SHOWN, svg))
    plain = _TOOK.sub("0.8&#160;s", _TIME.sub("10:00", plain))
    (folder / f"terminal-{name}.svg").write_text(plain, encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as empty:
        asyncio.run(make(Path(sys.argv[1]), home=Path(empty)))
