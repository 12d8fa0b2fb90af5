"""The hosts that commands may reach: by name and port, and then by address."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from clew.sandbox.public_addresses import find_address_problem, matches_host

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Ports of a host that is named without one.
WEB_PORTS: Final = (80, 443)
_NAME: Final = (
    r"(?:\*\.)?[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*"
)
_ENTRY: Final = re.compile(rf"(?P<host>\[[0-9a-f:.]+\]|{_NAME})(?::(?P<port>[0-9]{{1,5}}))?\.?")
_LAST_PORT: Final = 65535


@dataclass(frozen=True, kw_only=True, slots=True)
class AllowedHost:
    """A host of the settings."""

    #: In lower case, without brackets; ``*.example.org`` is everything below.
    pattern: str
    #: ``None`` for the ports of the web.
    port: int | None

    @property
    def is_address(self) -> bool:
        return _is_address(self.pattern)

    def allows(self, host: str, port: int) -> bool:
        ports = WEB_PORTS if self.port is None else (self.port,)
        return port in ports and matches_host(host, self.pattern)


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkRules:
    """Hosts that commands may reach."""

    hosts: Sequence[AllowedHost] = ()

    def find_host_problem(self, host: str, port: int) -> str | None:
        """Return a sentence for a host that is not allowed; nothing was looked up for it."""
        if any(each.allows(host, port) for each in self.hosts):
            return None
        if any(matches_host(host, each.pattern) for each in self.hosts):
            return f"port {port} of {host} is not in sandbox.hosts"
        return f"{host} is not in sandbox.hosts"

    def find_address_problem(self, host: str, address: str, port: int) -> str | None:
        """Return a sentence for an address of an allowed host that is not reached."""
        listed = (each for each in self.hosts if each.is_address)
        # An address that is not public is reached if it is listed itself: a name says nothing.
        if any(
            ip_address(each.pattern) == ip_address(address) and each.allows(each.pattern, port)
            for each in listed
        ):
            return None
        if problem := find_address_problem(address):
            return f"{host} is refused: {problem}, and is not in sandbox.hosts itself"
        return None


def parse_network_rules(entries: Iterable[str]) -> NetworkRules:
    """
    Return the rules of ``sandbox.hosts``.

    :raises ValueError: naming an entry that is not a host
    """
    return NetworkRules(hosts=tuple(map(parse_allowed_host, entries)))


def parse_allowed_host(text: str) -> AllowedHost:
    """
    Return a host of the settings: ``example.org``, ``*.example.org``, ``10.0.0.5:8080``.

    :raises ValueError: if it is not one
    """
    found = _ENTRY.fullmatch(text.strip().lower())
    port = None if found is None or found["port"] is None else int(found["port"])
    if found is None or not 1 <= (1 if port is None else port) <= _LAST_PORT:
        raise ValueError(
            f"{text!r} is not a host: write a name, *.NAME or an address, with :PORT if it is "
            "not 80 or 443"
        )
    host = found["host"].strip("[]")
    if ":" in host and not _is_address(host):
        raise ValueError(f"{text!r} is not an address")
    return AllowedHost(pattern=host, port=port)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
