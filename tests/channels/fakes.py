"""
The fake platforms, as campaigns use them: people in direct chats, and what they have seen.

A platform joins every campaign by a line in ``FAKES``.
"""

from __future__ import annotations

import abc
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.testing.telegram import FakeTelegram

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from clew.testing.telegram import Faults


@dataclass(frozen=True, slots=True)
class Seen:
    """A message of the agent, as it is shown now."""

    chat: int
    text: str


class Fake(abc.ABC):
    """One platform with one account of the agent; people and their direct chats are numbers."""

    #: The channel's name, as in ``[channels.NAME]``.
    name: str
    #: Its table there, without who may talk.
    settings: Mapping[str, object]
    #: Whether the platform sends one key once, or can be asked what has arrived: no repeats then.
    exact: bool = False

    @abc.abstractmethod
    def say(self, text: str, *, user: int) -> None:
        """Somebody writes; may be called in any thread."""

    @abc.abstractmethod
    def seen(self) -> Sequence[Seen]:
        """What the agent wrote, in the order of its sending."""

    @property
    @abc.abstractmethod
    def calls(self) -> int:
        """How often the platform was called."""

    @property
    @abc.abstractmethod
    def waiting(self) -> int:
        """What people did and nobody has acknowledged."""

    def served_at(self, url: str) -> None:
        """``clew serve`` is ready, with its API at ``url``: for platforms that call."""
        return


class _Telegram(Fake):
    name = "telegram"

    def __init__(self, telegram: FakeTelegram) -> None:
        self._telegram = telegram
        self.settings = {"token": telegram.token, "base_url": telegram.base_url}

    def say(self, text: str, *, user: int) -> None:
        self._telegram.say(text, user=user)

    def seen(self) -> Sequence[Seen]:
        return [Seen(one.chat, one.text) for one in self._telegram.messages]

    @property
    def calls(self) -> int:
        return len(self._telegram.calls)

    @property
    def waiting(self) -> int:
        return self._telegram.waiting


@contextmanager
def _telegram(faults: Faults | None) -> Generator[Fake]:
    with FakeTelegram(faults=faults) as telegram:
        yield _Telegram(telegram)


FAKES: Mapping[str, Callable[[Faults | None], AbstractContextManager[Fake]]] = {
    "telegram": _telegram,
}
