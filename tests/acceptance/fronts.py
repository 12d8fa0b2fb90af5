"""Two browsers, a terminal and a chat on one conversation, whose gateway is killed."""

from __future__ import annotations

import random
import re
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyte

from clew.testing import FakeProvider, Text
from clew.testing.telegram import FakeTelegram
from tests.acceptance.browser import Gateway, opened_browser, visiting
from tests.acceptance.program import Clew
from tests.acceptance.terminal import Terminal
from tests.waiting import block_until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from clew.testing import ProviderRequest, Reply
    from tests.acceptance.browser import Visit

CHAT: Final = 42
FRONTS: Final = ("left", "right", "terminal", "chat")
_TOKEN: Final = re.compile(r"\b(?:ask|ack)-[a-z]+-\d+\b")
_COLUMNS: Final = 100
#: Rows of the terminal for each message: all of the conversation is on its screen.
_ROWS_FOR_EACH: Final = 9
_REPEATED: Final = "may be a repeat"


def acknowledge(request: ProviderRequest) -> Reply:
    """Answer each message since the last answer by its token, slowly enough to be killed."""
    answered = max(
        (n for n, one in enumerate(request.messages) if one.role == "assistant"), default=-1
    )
    said = [one.text for one in request.messages[answered + 1 :] if one.role == "user"]
    tokens = [found.replace("ask", "ack") for text in said for found in _TOKEN.findall(text)]
    return Text(" ".join(tokens) or "nothing", chunks=4, delay=0.05)


class Screen:
    """A terminal that shows all of a conversation, read all the time."""

    def __init__(self, clew: Clew, conversation: str, rows: int) -> None:
        self._terminal = Terminal(clew, size=(rows, _COLUMNS))
        self._conversation = conversation
        self._screen = pyte.Screen(_COLUMNS, rows)
        self._drawn = 0
        self._stopped = threading.Event()

    def start(self, stack: ExitStack) -> None:
        """Start the terminal UI."""
        stack.enter_context(self._terminal)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        stack.callback(self._stop)
        block_until(lambda: "? keys" in self._terminal.screen)
        self.say(f"/resume {self._conversation}")
        block_until(self.tokens_of_start)

    def _read(self) -> None:
        while not self._stopped.is_set():
            self._terminal._read(time.monotonic() + 0.1)  # pyright: ignore[reportPrivateUsage]

    def _stop(self) -> None:
        self._stopped.set()
        self._reader.join()

    def tokens_of_start(self) -> bool:
        """Return whether the conversation is shown."""
        self.tokens()
        return any("nothing" in line for line in self._screen.display)

    def say(self, text: str) -> None:
        self._terminal.type(f"{text}\r")

    def tokens(self) -> list[str]:
        """Return what is shown, from top to bottom."""
        printed = self._terminal.screen
        pyte.Stream(self._screen).feed(printed[self._drawn :])
        self._drawn = len(printed)
        return _TOKEN.findall("\n".join(self._screen.display))


@dataclass(kw_only=True)
class Outcome:
    kills: int = 0
    sent: int = 0
    wrong: list[str] = field(default_factory=list[str])


@dataclass
class Fronts:
    """One conversation on four fronts."""

    gateway: Gateway
    telegram: FakeTelegram
    left: Visit
    right: Visit
    screen: Screen
    conversation: str
    sent: list[str] = field(default_factory=list[str])

    def say(self, front: str) -> None:
        """Send one more message."""
        token = f"ask-{front}-{len(self.sent)}"
        self.sent.append(token)
        match front:
            case "left" | "right":
                visit = self.left if front == "left" else self.right
                visit.page.locator("#composer").fill(token)
                visit.page.locator("#composer").press("Enter")
            case "terminal":
                self.screen.say(token)
            case _:
                self.telegram.post_message(token)

    def stored(self) -> list[str]:
        """Return the tokens of the conversation, as the store has them."""
        return [
            token
            for _, text in self.gateway.clew.said(self.conversation)
            for token in _TOKEN.findall(text)
        ]

    def is_answered(self) -> bool:
        """Return whether the store has an answer to each message."""
        return {one.replace("ask", "ack") for one in self.sent} <= {*self.stored()}

    def shown(self) -> dict[str, list[str]]:
        """Return the tokens that each screen shows."""
        pages = {"left": self.left.page, "right": self.right.page}
        read = {
            name: _TOKEN.findall(page.locator(".transcript").inner_text())
            for name, page in pages.items()
        }
        return {**read, "terminal": self.screen.tokens()}

    def chat(self, *, is_marked: bool) -> list[str]:
        """Return the tokens that the chat got, in messages that are marked as repeats or not."""
        texts = self.telegram.list_texts(CHAT)
        chosen = [one for one in texts if (_REPEATED in one) == is_marked]
        return [one for text in chosen for one in _TOKEN.findall(text)]


def kill_under_fronts(home: Path, store: str, seed: int, kills: int) -> Outcome:
    """Have four fronts talk while the gateway is killed; compare all screens with the store."""
    chosen = random.Random(seed)
    outcome = Outcome()
    with ExitStack() as stack:
        provider = stack.enter_context(FakeProvider(acknowledge))
        telegram = stack.enter_context(FakeTelegram())
        channel = {"TOKEN": telegram.token, "BASE_URL": telegram.base_url, "ALLOW": '["42"]'}
        env = {f"CLEW_CHANNELS__TELEGRAM__{name}": text for name, text in channel.items()}
        clew = Clew(home / "home", {"CLEW_STORE__URL": store, **env}).asking(provider)
        gateway = Gateway(clew)
        gateway.start()
        stack.callback(gateway.close)
        browser = stack.enter_context(opened_browser())
        left, right = (stack.enter_context(visiting(browser, gateway)) for _ in range(2))
        telegram.post_message("hello")
        block_until(lambda: telegram.list_texts(CHAT), seconds=60)
        (conversation,) = (one["id"] for one in clew.data("sessions", "list")["items"])
        for visit in (left, right):
            visit.page.goto(f"{gateway.url}/#/c/{conversation}")
            visit.page.locator(".answer").first.wait_for()
        rows = 30 + _ROWS_FOR_EACH * (len(FRONTS) * (kills + 1) + 1)
        screen = Screen(gateway.clew, conversation, rows)
        screen.start(stack)
        fronts = Fronts(gateway, telegram, left, right, screen, conversation)
        for number in range(kills):
            if number % 2:
                # A turn that was interrupted three times is given up.
                _wait(fronts.is_answered)
            _talk(fronts, chosen)
            time.sleep(chosen.random() * 0.8)
            gateway.kill()
            outcome.kills += 1
            for front in chosen.sample(FRONTS, 2):
                fronts.say(front)
            gateway.start()
        _talk(fronts, chosen)
        outcome.sent = len(fronts.sent)
        outcome.wrong = _find_wrong(fronts)
    return outcome


def _talk(fronts: Fronts, chosen: random.Random) -> None:
    for front in chosen.sample(FRONTS, 2):
        fronts.say(front)
        time.sleep(chosen.random() * 0.2)


def _find_wrong(fronts: Fronts) -> list[str]:
    expected = sorted(token for one in fronts.sent for token in (one, one.replace("ask", "ack")))
    _wait(lambda: sorted(fronts.stored()) == expected)
    stored = fronts.stored()
    wrong = [] if sorted(stored) == expected else [f"stored: {_compare(expected, sorted(stored))}"]
    _wait(lambda: all(tokens == stored for tokens in fronts.shown().values()))
    shown = fronts.shown().items()
    wrong += [f"{name}: {_compare(stored, tokens)}" for name, tokens in shown if tokens != stored]
    answers = [one.replace("ask", "ack") for one in fronts.sent if "-chat-" in one]
    # Nobody can tell whether an attempt that was killed has arrived: the next one says so.
    _wait(lambda: {*answers} <= {*fronts.chat(is_marked=False), *fronts.chat(is_marked=True)})
    plain, marked = fronts.chat(is_marked=False), fronts.chat(is_marked=True)
    wrong += [f"chat: {one} {plain.count(one)} times" for one in answers if plain.count(one) > 1]
    wrong += [f"chat: {one} never" for one in answers if one not in (*plain, *marked)]
    return wrong


def _wait(ready: Callable[[], bool]) -> None:
    try:
        block_until(ready, seconds=90, pause=0.5)
    except AssertionError:
        return


def _compare(expected: Sequence[str], found: Sequence[str]) -> str:
    missing = [one for one in expected if one not in found]
    doubled = sorted({one for one in found if found.count(one) > expected.count(one)})
    place = next(
        (n for n, pair in enumerate(zip(expected, found, strict=False)) if pair[0] != pair[1]),
        min(len(expected), len(found)),
    )
    return f"missing {missing}, doubled {doubled}, first difference at {place} of {len(expected)}"
