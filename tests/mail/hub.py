"""People and agents with mailboxes on one dovecot, and the SMTP server between them."""

from __future__ import annotations

import itertools
import uuid
from email.message import EmailMessage
from email.policy import SMTP
from typing import TYPE_CHECKING, Self

from clew.config.secret import Secret
from clew.gateway.channel import ChannelConfig, MemoryChannelStorage
from clew.gateway.channels.mail.channel import open_channel
from tests.mail.dovecot import PASSWORD, start_dovecot
from tests.mail.smtp import SentMail, SmtpServer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from clew.gateway.channel import Channel, ChannelStorage

AUTHSERV = "mx.example.org"
PERSON = "ann@people.example"


class MailHub:
    """A mailbox for the agent; with ``delivers``, mails arrive in the mailboxes of others, too."""

    def __init__(self, *, delivers: bool = False) -> None:
        self.dovecot = start_dovecot()
        self.smtp = SmtpServer(self.deliver if delivers else None)
        # A mailbox of its own for each test.
        self._mark = uuid.uuid4().hex[:12]
        self.address = self.name("clew")
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        self.smtp.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.smtp.__exit__(kind, error, trace)

    def name(self, agent: str) -> str:
        """Return an address here that only this test has."""
        return f"{agent}-{self._mark}@agents.example"

    def settings(self, address: str = "") -> Mapping[str, object]:
        """Return the channel's own settings."""
        return {
            "address": address or self.address,
            "imap": self.dovecot.url,
            "smtp": self.smtp.url,
            "authserv_id": AUTHSERV,
        }

    def open_channel(self, storage: ChannelStorage | None = None, **more: object) -> Channel:
        """Return a channel to the agent's mailbox."""
        return open_channel(
            ChannelConfig(
                name="mail",
                token=Secret.from_text(PASSWORD),
                base_url=None,
                options={**self.settings(), **more},
                storage=storage or MemoryChannelStorage(),
            )
        )

    def write(self, text: str, **headers: str) -> EmailMessage:
        """Return a mail of a person; ``_`` in the name of a header stands for ``-``."""
        mail = EmailMessage(policy=SMTP)
        given = {
            "From": f"Ann <{PERSON}>",
            "To": self.address,
            "Subject": "Hello",
            "Message-ID": f"<{next(self._numbers)}.{self._mark}@people.example>",
        }
        for name, value in {
            **given,
            **{k.replace("_", "-"): v for k, v in headers.items()},
        }.items():
            if value:
                mail[name] = value
        mail.set_content(text)
        return mail

    def post(self, mail: EmailMessage | bytes, *, to: str = "", proof: str = "dkim=pass") -> None:
        """Put a mail into a mailbox, as the server does that receives it."""
        source = mail if isinstance(mail, bytes) else mail.as_bytes()
        self.dovecot.append(to or self.address, _receive(source, proof))

    def deliver(self, sent: SentMail) -> None:
        """Deliver a mail that the SMTP server took."""
        domain = str(sent.mail["From"]).rpartition("@")[2].rstrip(">")
        self.dovecot.append(sent.to, _receive(sent.content, f"dkim=pass header.d={domain}"))


def _receive(source: bytes, proof: str) -> bytes:
    if proof == "dkim=pass":
        proof = "dkim=pass header.d=people.example"
    told = (
        f"Return-Path: <bounce@people.example>\r\nAuthentication-Results: {AUTHSERV}; {proof}\r\n"
    )
    return told.encode() + source
