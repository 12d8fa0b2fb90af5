"""
The fake platforms, as campaigns use them: people in direct chats, and what they have seen.

A platform joins every campaign by a line in ``FAKES``.
"""

from __future__ import annotations

import abc
import socket
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.gateway.text.markdown_reader import parse_markdown
from clew.gateway.text.rich_text import to_plain_text
from clew.testing.discord import FakeDiscord
from clew.testing.mattermost import FakeMattermost
from clew.testing.signal import FakeSignal
from clew.testing.slack import FakeSlack
from clew.testing.telegram import FakeTelegram
from clew.testing.webhook import FakeWebhook
from clew.testing.whatsapp import FakeWhatsApp

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from clew.testing.multipart import SentBytes
    from clew.testing.telegram import FaultInjector


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
    #: True if the platform sends a key once, or can tell what has arrived: then nothing repeats.
    exact: bool = False
    #: True if the platform tells of what has arrived: then only what did not is repeated.
    tells: bool = False
    #: The address for the API, for platforms that call it; else any or none.
    port: int | None = None

    @abc.abstractmethod
    def say(self, text: str, *, user: int) -> None:
        """Write a message as a person; callable in any thread."""

    @abc.abstractmethod
    def seen(self) -> Sequence[Seen]:
        """Return the messages of the agent, in the order of sending."""

    @property
    @abc.abstractmethod
    def calls(self) -> int:
        """Return the number of calls to the platform."""

    @property
    @abc.abstractmethod
    def waiting(self) -> int:
        """Return the events that were not acknowledged."""

    def files(self) -> Sequence[SentBytes]:
        """Return the files that the agent sent, in the order of sending."""
        return ()

    def served_at(self, url: str) -> None:
        """``clew serve`` is ready, with its API at ``url``: for platforms that call."""
        return


class _Telegram(Fake):
    name = "telegram"

    def __init__(self, telegram: FakeTelegram) -> None:
        self._telegram = telegram
        self.settings = {"token": telegram.token, "base_url": telegram.base_url}

    def say(self, text: str, *, user: int) -> None:
        self._telegram.post_message(text, user=user)

    def seen(self) -> Sequence[Seen]:
        return [Seen(one.chat, one.text) for one in self._telegram.messages]

    def files(self) -> Sequence[SentBytes]:
        return [one.file for one in self._telegram.messages if one.file is not None]

    @property
    def calls(self) -> int:
        return len(self._telegram.calls)

    @property
    def waiting(self) -> int:
        return self._telegram.pending_count


@contextmanager
def _telegram(faults: FaultInjector | None) -> Generator[Fake]:
    with FakeTelegram(faults=faults) as telegram:
        yield _Telegram(telegram)


def _read(content: str) -> str:
    """Markdown, as it is shown."""
    return to_plain_text(parse_markdown(content))


class _Slack(Fake):
    name = "slack"
    exact = True

    def __init__(self, slack: FakeSlack) -> None:
        self._slack = slack
        tokens = {"token": slack.token, "app_token": slack.app_token}
        self.settings = {**tokens, "base_url": slack.api_url}

    def say(self, text: str, *, user: int) -> None:
        self._slack.post_message(text, user=f"U{user}")

    def seen(self) -> Sequence[Seen]:
        return [Seen(int(one.channel[1:]), one.visible_text) for one in self._slack.messages]

    def files(self) -> Sequence[SentBytes]:
        return [one.file for one in self._slack.messages if one.file is not None]

    @property
    def calls(self) -> int:
        return self._slack.calls

    @property
    def waiting(self) -> int:
        return self._slack.pending_count


@contextmanager
def _slack(faults: FaultInjector | None) -> Generator[Fake]:
    with FakeSlack(faults=faults) as slack:
        yield _Slack(slack)


class _Discord(Fake):
    name = "discord"
    exact = True

    def __init__(self, discord: FakeDiscord) -> None:
        self._discord = discord
        self.settings = {"token": discord.token, "base_url": discord.api_url}

    def say(self, text: str, *, user: int) -> None:
        self._discord.post_message(text, user=str(user))

    def seen(self) -> Sequence[Seen]:
        return [Seen(int(one.channel[1:]), _read(one.content)) for one in self._discord.sent]

    def files(self) -> Sequence[SentBytes]:
        return [one.file for one in self._discord.sent if one.file is not None]

    @property
    def calls(self) -> int:
        return self._discord.calls

    @property
    def waiting(self) -> int:
        return self._discord.pending_count


@contextmanager
def _discord(faults: FaultInjector | None) -> Generator[Fake]:
    # People write before the first process is there to hear it.
    with FakeDiscord(faults=faults, early=True) as discord:
        yield _Discord(discord)


def _find_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


class _Webhook(Fake):
    name = "webhook"
    exact = True

    def __init__(self, webhook: FakeWebhook) -> None:
        self._webhook = webhook
        self.settings = {"base_url": webhook.answers_url, "secret": webhook.secret}
        self.port = _find_free_port()
        self.served_at(f"http://127.0.0.1:{self.port}")

    def say(self, text: str, *, user: int) -> None:
        self._webhook.post_message(text, user=str(user))

    def seen(self) -> Sequence[Seen]:
        return [Seen(int(one.chat), _read(one.text)) for one in self._webhook.sent]

    @property
    def calls(self) -> int:
        return self._webhook.calls

    @property
    def waiting(self) -> int:
        return self._webhook.pending_count

    def served_at(self, url: str) -> None:
        self._webhook.set_target(f"{url}/hooks/webhook")


@contextmanager
def _webhook(faults: FaultInjector | None) -> Generator[Fake]:
    with FakeWebhook(faults=faults) as webhook:
        yield _Webhook(webhook)


class _Mattermost(Fake):
    name = "mattermost"
    exact = True

    def __init__(self, mattermost: FakeMattermost) -> None:
        self._mattermost = mattermost
        self.settings = {
            "token": mattermost.token,
            "base_url": mattermost.url,
            "user": "clew",
        }

    def say(self, text: str, *, user: int) -> None:
        self._mattermost.post_message(text, user=f"u{user}")

    def seen(self) -> Sequence[Seen]:
        return [Seen(int(one.channel[2:]), _read(one.message)) for one in self._mattermost.sent]

    def files(self) -> Sequence[SentBytes]:
        return [one.file for one in self._mattermost.sent if one.file is not None]

    @property
    def calls(self) -> int:
        return self._mattermost.calls

    @property
    def waiting(self) -> int:
        return self._mattermost.pending_count


@contextmanager
def _mattermost(faults: FaultInjector | None) -> Generator[Fake]:
    # People write before the first process is there to hear it.
    with FakeMattermost(faults=faults, early=True) as mattermost:
        yield _Mattermost(mattermost)


class _WhatsApp(Fake):
    name = "whatsapp"
    tells = True

    def __init__(self, whatsapp: FakeWhatsApp) -> None:
        self._whatsapp = whatsapp
        self.settings = {"base_url": whatsapp.url, **whatsapp.settings}
        self.port = _find_free_port()
        self.served_at(f"http://127.0.0.1:{self.port}")

    def say(self, text: str, *, user: int) -> None:
        self._whatsapp.post_message(text, user=str(user))

    def seen(self) -> Sequence[Seen]:
        return [Seen(int(one.to), one.text) for one in self._whatsapp.sent]

    def files(self) -> Sequence[SentBytes]:
        return [one.file for one in self._whatsapp.sent if one.file is not None]

    @property
    def calls(self) -> int:
        return self._whatsapp.calls

    @property
    def waiting(self) -> int:
        return self._whatsapp.pending_count

    def served_at(self, url: str) -> None:
        self._whatsapp.set_target(f"{url}/whatsapp/whatsapp")


@contextmanager
def _whatsapp(faults: FaultInjector | None) -> Generator[Fake]:
    with FakeWhatsApp(faults=faults) as whatsapp:
        yield _WhatsApp(whatsapp)


class _Signal(Fake):
    name = "signal"

    def __init__(self, signal: FakeSignal) -> None:
        self._signal = signal
        self.settings = {"base_url": signal.url, "account": signal.account}

    def say(self, text: str, *, user: int) -> None:
        self._signal.post_message(text, user=str(user))

    def seen(self) -> Sequence[Seen]:
        return [Seen(int(one.chat), one.text) for one in self._signal.sent]

    def files(self) -> Sequence[SentBytes]:
        return [one.file for one in self._signal.sent if one.file is not None]

    @property
    def calls(self) -> int:
        return self._signal.calls

    @property
    def waiting(self) -> int:
        return self._signal.pending_count


@contextmanager
def _signal(faults: FaultInjector | None) -> Generator[Fake]:
    with FakeSignal(faults=faults) as signal:
        yield _Signal(signal)


FAKES: Mapping[str, Callable[[FaultInjector | None], AbstractContextManager[Fake]]] = {
    "telegram": _telegram,
    "slack": _slack,
    "discord": _discord,
    "webhook": _webhook,
    "mattermost": _mattermost,
    "whatsapp": _whatsapp,
    "signal": _signal,
}
