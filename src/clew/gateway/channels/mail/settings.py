"""Settings of the mail channel: the two servers, the address, and whose word counts."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from clew.errors import SettingsError
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.gateway.channel import ChannelConfig

#: The channel's own settings keys.
MAIL_OPTIONS: Final = frozenset(
    {
        "address",
        "append_sent",
        "authserv_id",
        "folder",
        "imap",
        "max_per_hour",
        "require_authentication",
        "sent",
        "smtp",
        "user",
    }
)
#: By scheme: the usual port, and whether the connection begins with TLS.
_IMAP: Final = {"imaps": (993, True), "imap": (143, False)}
_SMTP: Final = {"smtps": (465, True), "smtp": (587, False)}


class MailServer(Record):
    """Address of a server; without ``tls``, STARTTLS comes first unless it is on this machine."""

    host: str
    port: int
    tls: bool
    is_local: bool


class MailSettings(Record):
    """One mailbox, and the server that sends for it."""

    address: str
    user: str
    password: str
    imap: MailServer
    smtp: MailServer
    folder: str
    #: The folder of what was sent; empty: the one that the server names as such, or ``Sent``.
    sent: str
    #: Copies of what was sent are appended to ``sent``; else the server does that by itself.
    append_sent: bool
    #: The name under which the own server writes ``Authentication-Results``.
    authserv_id: str
    require_authentication: bool
    #: Mails of one thread that are answered in an hour.
    max_per_hour: int

    @property
    def domain(self) -> str:
        return self.address.rpartition("@")[2]


def read_settings(config: ChannelConfig) -> MailSettings:
    """
    Read the settings of ``[channels.NAME]``.

    :raises SettingsError: if one is missing or invalid
    """
    table, given = f"channels.{config.name}", config.options
    if unknown := sorted(given.keys() - MAIL_OPTIONS):
        raise SettingsError(
            f"{table} has no setting {unknown[0]}; its own are {', '.join(sorted(MAIL_OPTIONS))}"
        )
    password = "" if config.token is None else config.token.reveal().strip()
    if not password:
        raise SettingsError(f"{table}.token is missing: the password of the mailbox")
    address = _read_address(table, given)
    requires = _read_flag(table, given, "require_authentication", default=True)
    return MailSettings(
        address=address,
        user=_read_text(table, given, "user", default=address),
        password=password,
        imap=_read_server(table, given, "imap", _IMAP),
        smtp=_read_server(table, given, "smtp", _SMTP),
        folder=_read_text(table, given, "folder", default="INBOX"),
        sent=_read_text(table, given, "sent", default=""),
        append_sent=_read_flag(table, given, "append_sent", default=True),
        authserv_id=_read_authserv_id(table, given, requires=requires),
        require_authentication=requires,
        max_per_hour=_read_limit(table, given),
    )


def _read_text(table: str, given: Mapping[str, object], key: str, *, default: str) -> str:
    found = given.get(key, default)
    if not isinstance(found, str) or not found.isprintable():
        raise SettingsError(f"{table}.{key} is not a text on one line")
    return found.strip() or default


def _read_address(table: str, given: Mapping[str, object]) -> str:
    address = _read_text(table, given, "address", default="").lower()
    local, at, domain = address.rpartition("@")
    if not (local and at and domain) or any(one in address for one in ' <>,;:"'):
        raise SettingsError(
            f"{table}.address is not the agent's own address, such as clew@example.org"
        )
    return address


def _read_authserv_id(table: str, given: Mapping[str, object], *, requires: bool) -> str:
    found = _read_text(table, given, "authserv_id", default="").lower()
    if requires and not found:
        raise SettingsError(
            f"{table}.authserv_id is missing: the first word of the header "
            "Authentication-Results in a mail that your server has received, such as "
            "mx.example.org"
        )
    return found


def _read_flag(table: str, given: Mapping[str, object], key: str, *, default: bool) -> bool:
    found = given.get(key, default)
    if not isinstance(found, bool):
        raise SettingsError(f"{table}.{key} is neither true nor false")
    return found


def _read_limit(table: str, given: Mapping[str, object]) -> int:
    found = given.get("max_per_hour", 20)
    if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= 1000:
        raise SettingsError(f"{table}.max_per_hour is not a number from 1 to 1000")
    return found


def _read_server(
    table: str, given: Mapping[str, object], key: str, schemes: Mapping[str, tuple[int, bool]]
) -> MailServer:
    text = _read_text(table, given, key, default="")
    try:
        address = urlsplit(text)
        host, port = address.hostname, address.port
    except ValueError:
        address, host, port = urlsplit(""), None, None
    if address.scheme not in schemes or not host or address.username or address.path.strip("/"):
        first = next(iter(schemes))
        raise SettingsError(
            f"{table}.{key} is not the address of the server, such as {first}://mail.example.org"
        )
    usual, tls = schemes[address.scheme]
    return MailServer(host=host, port=port or usual, tls=tls, is_local=_is_local(host))


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
