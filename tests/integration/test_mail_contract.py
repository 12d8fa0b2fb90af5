"""The contract suite of channels, on mail: a real dovecot, and an SMTP server."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from clew.core.route import Route
from clew.gateway.channel import Channel, MemoryChannelStorage
from clew.gateway.channels.mail.threads import name_thread
from clew.testing.channels import ChannelContract, ChannelPlatform, ShownMessage
from tests.mail.hub import PERSON, MailHub

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

ROOT = "<root@people.example>"


class Mail:
    """A thread with Ann."""

    route = Route(platform="mail", kind="dm", chat=PERSON, thread=name_thread(PERSON, ROOT))

    def __init__(self, hub: MailHub) -> None:
        self._hub, self._storage = hub, MemoryChannelStorage()

    def create_channel(self) -> Channel:
        return self._hub.open_channel(self._storage)

    def post_message(self, text: str) -> None:
        self._hub.post(self._hub.write(text, In_Reply_To=ROOT, Subject="Re: Hello"))

    def shown_messages(self) -> Sequence[ShownMessage]:
        return [
            ShownMessage(message=str(one.mail["Message-ID"]), text=one.text, document=one.document)
            for one in self._hub.smtp.sent
        ]

    def cut_next_call(self, *, after: bool) -> None:
        self._hub.smtp.cuts.append(after)

    def throttle_calls(self, seconds: int) -> None:
        self._hub.smtp.throttled_until = time.monotonic() + seconds

    def block_agent(self) -> None:
        self._hub.smtp.blocked.add(PERSON)


class TestMail(ChannelContract):
    @asynccontextmanager
    async def open_platform(self) -> AsyncGenerator[ChannelPlatform]:
        with MailHub() as hub:
            yield Mail(hub)
