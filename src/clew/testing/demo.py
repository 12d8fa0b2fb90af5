"""
``python -m clew.testing.demo``: watch a conversation on a chat platform, without a token.

Everything is real but the platform and the model: ``clew serve`` and ``clew pair`` as people run
them, on a home that is removed at the end, before a fake Telegram and a fake provider on loopback.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from clew.testing.provider import Calls, FakeProvider, Reply, Request, Text
from clew.testing.provider.replies import Call
from clew.testing.telegram import FakeTelegram

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

ADA = 42
_PATIENCE = 60.0
_ANSWERS = {
    "What is a clew?": "A clew is a ball of thread. Ariadne gave one to **Theseus**, who found his "
    "way out of the labyrinth by it.",
    "And who built the labyrinth?": "Daedalus, for king Minos of Crete. He was shut up in it "
    "himself, and left it by air.",
}
_GARDEN = '''\
from pydantic_ai import Agent

agent = Agent(instructions="You keep a garden.")


@agent.tool_plain(requires_approval=True)
def water(what: str) -> str:
    """Open the tap."""
    return f"{what}: watered"
'''


def main() -> int:
    """Play it; 0, or 1 if something did not come."""
    try:
        with tempfile.TemporaryDirectory(prefix="clew-demo-") as home:
            _play(Path(home))
    except TimeoutError as error:
        _print(f"\nThis took too long: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _play(home: Path) -> None:
    (home / "plugins").mkdir()
    (home / "plugins" / "garden.py").write_text(_GARDEN)
    with FakeProvider(_script) as provider, FakeTelegram() as telegram:
        clew = _Clew(home, telegram, provider)
        chat = _Chat(telegram)
        with clew.serving() as process:
            _let_in(chat, clew)
            _talk(chat)
            _ask_first(chat)
            _kill(chat, process)
        with clew.serving():
            chat.hear("left it by air")
            _narrate("The answer came once. That is all it takes: one process, one file.")


def _let_in(chat: _Chat, clew: _Clew) -> None:
    _narrate("Ada writes to a bot that does not know her. Nobody may talk by default.")
    chat.say("Hello?")
    code = re.search(r"[A-Z0-9]{4}-[A-Z0-9]{4}", chat.hear("-"))
    assert code is not None
    _narrate(f"You let her in: clew pair approve {code[0]}")
    _print("   $ " + clew.run("pair", "approve", code[0]))
    chat.hear("")


def _talk(chat: _Chat) -> None:
    _narrate("She asks; the answer grows in the chat while it is made.")
    chat.say("What is a clew?")
    chat.hear("labyrinth by it", grows=True)


def _ask_first(chat: _Chat) -> None:
    _narrate("The agent wants to use a tool that needs her word.")
    chat.say("Water the roses, please.")
    chat.hear("water", buttons=True)
    _print("   (Ada presses Allow)")
    chat.telegram.press("Allow", user=ADA)
    chat.hear("Done")


def _kill(chat: _Chat, process: subprocess.Popen[str]) -> None:
    _narrate("In the middle of the next answer: kill -9.")
    chat.say("And who built the labyrinth?")
    chat.wait(lambda: any("Daedalus" in text for text in chat.telegram.texts(ADA)), "Daedalus")
    process.kill()
    process.wait()
    _print("   (the gateway is dead)")
    _narrate("It is started again, and nobody says anything to it.")


def _script(request: Request) -> Reply:
    if request.messages[-1].results:
        return Text("Done: the roses are watered.")
    said = request.last_user_text
    if said.startswith("Water"):
        return Calls([Call("water", {"what": "roses"})])
    return Text(_ANSWERS.get(said, "Yes?"), chunks=12, delay=0.0 if request.earlier else 0.25)


class _Chat:
    """Ada's chat with the bot, printed as it goes on."""

    def __init__(self, telegram: FakeTelegram) -> None:
        self.telegram = telegram
        self._seen = 0

    def say(self, text: str) -> None:
        self._seen = len(self.telegram.texts(ADA))
        _say("Ada", text)
        self.telegram.say(text, user=ADA)

    def hear(self, part: str, *, grows: bool = False, buttons: bool = False) -> str:
        """Wait for a new message with ``part`` in it, and print it."""

        def found() -> bool:
            new = [message for message in self.telegram.messages if message.chat == ADA]
            return any(
                part in message.text and bool(message.buttons) >= buttons
                for message in new[self._seen :]
            )

        self.wait(found, part)
        messages = [message for message in self.telegram.messages if message.chat == ADA]
        for message in messages[self._seen :]:
            if grows:
                for text in message.texts[:-1]:
                    _say("clew", text)
            labels = "".join(f"  [{one['text']}]" for row in message.buttons for one in row)
            _say("clew", message.text + labels)
        self._seen = len(messages)
        return messages[-1].text

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + _PATIENCE
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"nothing with {what!r} came in the chat")
            time.sleep(0.02)


class _Clew:
    """The program, on a home of its own."""

    def __init__(self, home: Path, telegram: FakeTelegram, provider: FakeProvider) -> None:
        set_ = {
            "agent.object": "garden:agent",
            "model.name": "openai-chat:fake-model",
            "model.base_url": provider.openai_url,
            "api.port": "0",
            "channels.telegram.token": telegram.token,
            "channels.telegram.base_url": telegram.base_url,
        }
        self._command = [sys.executable, "-c", "import sys; from clew.cli import main; main()"]
        self._command += ["--home", str(home)]
        for key, value in set_.items():
            self._command += ["--set", f"{key}={value}"]

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._command, *arguments], capture_output=True, text=True, check=True, env=_quiet()
        )
        return done.stdout.strip()

    @contextmanager
    def serving(self) -> Generator[subprocess.Popen[str]]:
        """``clew serve``, ready; ended by SIGTERM if it is not dead by then."""
        with subprocess.Popen(
            [*self._command, "serve"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=_quiet(),
        ) as process:
            assert process.stdout is not None
            if not process.stdout.readline().startswith("ready"):
                raise TimeoutError("clew serve did not start; try `clew doctor`")
            try:
                yield process
            finally:
                process.send_signal(signal.SIGTERM)


def _quiet() -> dict[str, str]:
    """The environment without a person's own settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("CLEW_")}


def _say(who: str, text: str) -> None:
    first, *more = text.splitlines()
    _print("\n".join([f"   {who:<6}{first}", *(f"{'':<9}{line}".rstrip() for line in more)]))


def _narrate(text: str) -> None:
    _print(f"\n{text}\n")


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
