"""
The conversation in the README, recorded: ``python -m tests.acceptance.recording`` writes it there.

A scripted model stops in mid answer, so that it can be interrupted at the same word each time.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.testing import FakeProvider, Text, reply_by_user_text
from tests.acceptance.program import Clew
from tests.acceptance.terminal import CTRL_C, CTRL_D, Terminal

if TYPE_CHECKING:
    from clew.testing import ProviderRequest

README: Final = Path(__file__).parents[2] / "README.md"
BEGIN: Final = "<!-- recorded by tests/acceptance/recording.py -->\n```text\n"
END: Final = "```\n"

ASK: Final = "I am Ariadne. Tell me about the labyrinth."
AGAIN: Final = "Shorter."
NAME: Final = "What is my name?"
LONG: Final = (
    "Minos had it built by Daedalus, for the Minotaur, so winding that nobody ever got out."
)
SHORT: Final = "Many went in. With a thread, one came out."
#: Seconds before each half of an answer that will be interrupted.
PAUSE: Final = 2.0


def remember(request: ProviderRequest) -> Text:
    """Return the facts that a model can know from its context."""
    (name,) = re.findall(r"I am (\w+)", request.user_texts[0])
    return Text(f"You are {name}.")


SCRIPT: Final = reply_by_user_text(
    {
        ASK: Text(LONG, chunks=2, delay=PAUSE),
        AGAIN: [Text(SHORT, chunks=2, delay=PAUSE), Text(SHORT)],
        NAME: remember,
    }
)


def record() -> str:
    """The screens of two chats, the first of which is killed."""
    with FakeProvider(SCRIPT) as provider, tempfile.TemporaryDirectory() as folder:
        model = {"CLEW_MODEL__NAME": "openai-chat:scripted", "NO_COLOR": "1"}
        clew = Clew(Path(folder) / "home").asking(provider).with_env(model)
        with Terminal(clew, "chat") as first:
            first.see("> ")
            first.type(f"{ASK}\n")
            first.see(LONG[:20])
            first.type(CTRL_C)
            first.see("(stopped)")
            first.see("> ")
            first.type(f"{AGAIN}\n")
            first.see(SHORT[:15])
            first.kill()
        with Terminal(clew, "chat") as second:
            second.see(SHORT)
            second.see("> ")
            second.type(f"{NAME}\n")
            second.see("Ariadne")
            second.see("> ")
            second.press(CTRL_D)
            second.ended()
    return (
        f"$ clew chat\n{screen(first)}          # in another terminal: kill -9\n"
        f"Killed\n$ clew chat\n{screen(second)}\n"
    )


def screen(terminal: Terminal) -> str:
    """Return the final screen for the printed output."""
    text = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", terminal.screen)
    text = text.replace("\r\n", "\n").replace("\r", "").replace("\x03", "^C")
    return text.rstrip("\n> ")


def in_readme() -> str:
    """The recording that stands in the README."""
    _, _, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    recorded, _, _ = rest.partition(END)
    return recorded


def main() -> None:
    """Put a fresh recording into the README."""
    text = README.read_text(encoding="utf-8")
    README.write_text(text.replace(f"{BEGIN}{in_readme()}", f"{BEGIN}{record()}"), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
