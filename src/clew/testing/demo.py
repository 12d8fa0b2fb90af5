"""
``python -m clew.testing.demo``: a conversation on a chat platform, without a token.

Only the platform and the model are fakes, on loopback: ``clew serve`` and ``clew pair`` run
as usual, on a home that is removed at the end.
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

from clew.testing.provider import Calls, FakeProvider, ProviderRequest, Reply, Text
from clew.testing.provider.replies import ScriptedCall
from clew.testing.telegram import FakeTelegram

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

USER_ID = 42
_TIMEOUT = 60.0
_ANSWERS = {
    "What is a clew?": "A clew is a ball of thread. Ariadne gave one to **Theseus**, who found his "
    "way out of the labyrinth by it.",
    "And who built the labyrinth?": "Daedalus, for king Minos of Crete. He was shut up in it "
    "himself, and left it by air.",
}
_PLUGIN_SOURCE = '''\
from pydantic_ai import Agent

agent = Agent(instructions="You keep a garden.")


@agent.tool_plain(requires_approval=True)
def water(what: str) -> str:
    """Open the tap."""
    return f"{what}: watered"
'''


def main() -> int:
    """Run the demo; return 0, or 1 if an expected message did not arrive."""
    try:
        with tempfile.TemporaryDirectory(prefix="clew-demo-") as home:
            _run_demo(Path(home))
    except TimeoutError as error:
        _print_text(f"\nThis took too long: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _run_demo(home: Path) -> None:
    (home / "plugins").mkdir()
    (home / "plugins" / "garden.py").write_text(_PLUGIN_SOURCE)
    with FakeProvider(_script_reply) as provider, FakeTelegram() as telegram:
        clew = _ClewProcess(home, telegram, provider)
        chat = _DemoChat(telegram)
        with clew.run_gateway() as process:
            _approve_user(chat, clew)
            _chat_briefly(chat)
            _approve_tool(chat)
            _kill_gateway(chat, process)
        with clew.run_gateway():
            chat.wait_for_message("left it by air")
            _narrate("The answer came once. That is all it takes: one process, one file.")


def _approve_user(chat: _DemoChat, clew: _ClewProcess) -> None:
    _narrate("Ada writes to a bot that does not know her. By default nobody has access.")
    chat.post_message("Hello?")
    code = re.search(r"[A-Z0-9]{4}-[A-Z0-9]{4}", chat.wait_for_message("-"))
    assert code is not None
    _narrate(f"You grant her access: clew pair approve {code[0]}")
    _print_text("   $ " + clew.run_command("pair", "approve", code[0]))
    chat.wait_for_message("")


def _chat_briefly(chat: _DemoChat) -> None:
    _narrate("She asks; the answer grows in the chat while it is made.")
    chat.post_message("What is a clew?")
    chat.wait_for_message("labyrinth by it", grows=True)


def _approve_tool(chat: _DemoChat) -> None:
    _narrate("The agent wants to use a tool that needs her approval.")
    chat.post_message("Water the roses, please.")
    chat.wait_for_message("water", buttons=True)
    _print_text("   (Ada presses Allow)")
    chat.telegram.press_button("Allow", user=USER_ID)
    chat.wait_for_message("Done")


def _kill_gateway(chat: _DemoChat, process: subprocess.Popen[str]) -> None:
    _narrate("In the middle of the next answer: kill -9.")
    chat.post_message("And who built the labyrinth?")
    chat.wait_until(
        lambda: any("Daedalus" in text for text in chat.telegram.list_texts(USER_ID)), "Daedalus"
    )
    process.kill()
    process.wait()
    _print_text("   (the gateway is dead)")
    _narrate("It is started again, without a new message.")


def _script_reply(request: ProviderRequest) -> Reply:
    if request.messages[-1].results:
        return Text("Done: the roses are watered.")
    said = request.last_user_text
    if said.startswith("Water"):
        return Calls([ScriptedCall("water", {"what": "roses"})])
    return Text(
        _ANSWERS.get(said, "Yes?"), chunks=12, delay=0.0 if request.earlier_requests else 0.25
    )


class _DemoChat:
    """Ada's chat with the bot, printed as it proceeds."""

    def __init__(self, telegram: FakeTelegram) -> None:
        self.telegram = telegram
        self._seen = 0

    def post_message(self, text: str) -> None:
        self._seen = len(self.telegram.list_texts(USER_ID))
        _print_message("Ada", text)
        self.telegram.post_message(text, user=USER_ID)

    def wait_for_message(self, part: str, *, grows: bool = False, buttons: bool = False) -> str:
        """Wait for a new message that contains ``part``, and print it."""

        def is_found() -> bool:
            new = [message for message in self.telegram.messages if message.chat == USER_ID]
            return any(
                part in message.text and bool(message.buttons) >= buttons
                for message in new[self._seen :]
            )

        self.wait_until(is_found, part)
        messages = [message for message in self.telegram.messages if message.chat == USER_ID]
        for message in messages[self._seen :]:
            if grows:
                for text in message.texts[:-1]:
                    _print_message("clew", text)
            labels = "".join(f"  [{one['text']}]" for row in message.buttons for one in row)
            _print_message("clew", message.text + labels)
        self._seen = len(messages)
        return messages[-1].text

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + _TIMEOUT
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"nothing with {what!r} came in the chat")
            time.sleep(0.02)


class _ClewProcess:
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

    def run_command(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._command, *arguments],
            capture_output=True,
            text=True,
            check=True,
            env=_clean_environment(),
        )
        return done.stdout.strip()

    @contextmanager
    def run_gateway(self) -> Generator[subprocess.Popen[str]]:
        """Run ``clew serve`` until it is ready; end it with SIGTERM unless it is dead by then."""
        with subprocess.Popen(
            [*self._command, "serve"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=_clean_environment(),
        ) as process:
            assert process.stdout is not None
            if not process.stdout.readline().startswith("ready"):
                raise TimeoutError("clew serve did not start; try `clew doctor`")
            try:
                yield process
            finally:
                process.send_signal(signal.SIGTERM)


def _clean_environment() -> dict[str, str]:
    """Return the environment without the user's own settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("CLEW_")}


def _print_message(who: str, text: str) -> None:
    first, *more = text.splitlines()
    _print_text("\n".join([f"   {who:<6}{first}", *(f"{'':<9}{line}".rstrip() for line in more)]))


def _narrate(text: str) -> None:
    _print_text(f"\n{text}\n")


def _print_text(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
