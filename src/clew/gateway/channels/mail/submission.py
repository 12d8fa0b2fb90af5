"""Sending of mails by SMTP, and the mapping of failures."""

from __future__ import annotations

import re
import ssl
from typing import TYPE_CHECKING, Final

from aiosmtplib import SMTP
from aiosmtplib.errors import (
    SMTPAuthenticationError,
    SMTPException,
    SMTPResponseException,
    SMTPTimeoutError,
)

from clew.errors import (
    AccountRefused,
    ChannelError,
    NotDelivered,
    NotSent,
    OutcomeUnknown,
    Throttled,
)

if TYPE_CHECKING:
    from clew.gateway.channels.mail.settings import MailSettings

#: Seconds for one answer of the server, and after the content of a mail.
_TIMEOUT, _DATA_TIMEOUT = 15.0, 40.0
#: Seconds to wait where a refusal names no time.
_DEFAULT_RETRY_AFTER: Final = 60.0
_MAX_RETRY_AFTER: Final = 3600.0
_SECONDS: Final = re.compile(r"\b(\d{1,5})\s*(s|sec|second|min|minute)", re.IGNORECASE)


async def submit_mail(settings: MailSettings, content: bytes, *, to: str) -> None:
    """
    Hand a mail over to the server; returns once the server has taken it.

    :raises NotSent: if the server certainly did not take it
    :raises OutcomeUnknown: if the connection was lost while the server was to confirm it
    :raises NotDelivered: if the server refuses the mail or its recipient
    """
    client = _create_client(settings)
    try:
        await _prepare(client, settings, to=to, size=len(content))
        try:
            await client.data(content, timeout=_DATA_TIMEOUT)
        except SMTPResponseException:
            raise
        except (SMTPException, OSError, TimeoutError) as error:
            what = type(error).__name__
            raise OutcomeUnknown(f"the SMTP connection was lost ({what})") from None
        # It is taken: how the connection ends does not matter.
    except SMTPResponseException as error:
        raise to_channel_error(error) from None
    finally:
        client.close()


def _create_client(settings: MailSettings) -> SMTP:
    server = settings.smtp
    return SMTP(
        hostname=server.host,
        port=server.port,
        timeout=_TIMEOUT,
        use_tls=server.tls,
        start_tls=not (server.tls or server.is_local),
        tls_context=None if server.is_local and not server.tls else ssl.create_default_context(),
        local_hostname=settings.domain,
    )


async def _prepare(client: SMTP, settings: MailSettings, *, to: str, size: int) -> None:
    """Connect, log in, and name sender and recipient: all of it without effect."""
    try:
        await client.connect()
        await client.ehlo()
        if client.supports_extension("auth"):
            await client.login(settings.user, settings.password)
        sized = [f"SIZE={size}"] if client.supports_extension("size") else []
        await client.mail(settings.address, options=sized)
        await client.rcpt(to)
    except SMTPResponseException:
        raise
    except (SMTPException, OSError, TimeoutError) as error:
        if isinstance(error, SMTPTimeoutError):
            raise NotSent("the SMTP server does not answer") from None
        raise NotSent(f"the SMTP server cannot be reached ({type(error).__name__})") from None


def to_channel_error(error: SMTPResponseException) -> ChannelError:
    """Return the error that a refusal of the server stands for."""
    says = " ".join(error.message.split())[:300]
    if isinstance(error, SMTPAuthenticationError) or error.code in (530, 534, 535, 538):
        return AccountRefused(
            f"the SMTP server refuses user and password ({error.code} {says}): check them, or "
            "create a password for this program"
        )
    if 400 <= error.code < 500:
        return Throttled(_read_seconds(says), account=error.code == 421)
    if error.code >= 500:
        return NotDelivered(f"the mail server refused the mail: {error.code} {says}")
    return NotSent(f"the SMTP server answered {error.code}")


def _read_seconds(says: str) -> float:
    found = _SECONDS.search(says)
    if found is None:
        return _DEFAULT_RETRY_AFTER
    unit = 60 if found[2].lower().startswith("min") else 1
    return min(max(1.0, float(found[1]) * unit), _MAX_RETRY_AFTER)
