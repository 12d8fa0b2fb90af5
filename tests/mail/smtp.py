"""An SMTP server that takes mails, refuses them, or breaks off, as a test wants it."""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import dataclass
from email import message_from_bytes, policy
from typing import TYPE_CHECKING, Any, Self

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from tests.mail.dovecot import PASSWORD

if TYPE_CHECKING:
    from collections.abc import Callable
    from email.message import EmailMessage
    from types import TracebackType


@dataclass(frozen=True, slots=True)
class SentMail:
    """A mail that the server took."""

    to: str
    content: bytes

    @property
    def mail(self) -> EmailMessage:
        return message_from_bytes(self.content, policy=policy.default)

    @property
    def text(self) -> str:
        body = self.mail.get_body(("plain",))
        return "" if body is None else body.get_content().replace("\r\n", "\n")

    @property
    def html(self) -> str:
        body = self.mail.get_body(("html",))
        return "" if body is None else body.get_content()

    @property
    def document(self) -> str | None:
        for part in self.mail.iter_attachments():
            content = part.get_payload(decode=True)
            return content.decode() if isinstance(content, bytes) else None
        return None


class SmtpServer:
    """A server on loopback; ``deliver`` is told of each mail that it takes."""

    def __init__(self, deliver: Callable[[SentMail], None] | None = None) -> None:
        self.sent: list[SentMail] = []
        #: Commands MAIL that came.
        self.calls = 0
        self.blocked: set[str] = set()
        #: Cut the next connection: before (``False``) or after (``True``) its mail is taken.
        self.cuts: list[bool] = []
        self.throttled_until = 0.0
        self._deliver, self._lock = deliver, threading.Lock()

    def __enter__(self) -> Self:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port: int = free.getsockname()[1]
        self._controller = Controller(
            self,
            hostname="127.0.0.1",
            port=port,
            # Else it asks the name servers, for each connection.
            server_hostname="localhost",
            authenticator=_authenticate,
            auth_require_tls=False,
        )
        self._controller.start()
        self.url = f"smtp://127.0.0.1:{port}"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._controller.stop()

    async def handle_MAIL(  # noqa: N802  (named by aiosmtpd)
        self, server: Any, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        if not session.authenticated:
            return "530 5.7.0 Log in first"
        self.calls += 1
        if (left := self.throttled_until - time.monotonic()) > 0:
            return f"451 4.7.1 Greylisted: try again in {left:.0f} seconds"
        if self.cuts and not self.cuts[0]:
            self.cuts.pop()
            server.transport.abort()
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(  # noqa: N802  (named by aiosmtpd)
        self, server: Any, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        if address in self.blocked:
            return "550 5.1.1 No such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        for address in envelope.rcpt_tos:
            self._take(SentMail(address, envelope.original_content))
        if self.cuts and self.cuts[0]:
            self.cuts.pop()
            server.transport.abort()
        return "250 OK"

    def _take(self, mail: SentMail) -> None:
        with self._lock:
            self.sent.append(mail)
        if self._deliver is not None:
            self._deliver(mail)


def _authenticate(
    server: Any, session: Any, envelope: Any, mechanism: str, told: Any
) -> AuthResult:
    return AuthResult(success=told.password == PASSWORD.encode())
