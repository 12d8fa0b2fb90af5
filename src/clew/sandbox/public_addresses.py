"""Addresses of the public internet, and those that give away credentials of a machine."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

#: Credentials of the machine, at many cloud providers; refused also where private ones are allowed.
_METADATA: Final = frozenset(
    ip_address(one)
    for one in (
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
        "fd00:42::42",
    )
)
_LINK_LOCAL: Final = (IPv4Network("169.254.0.0/16"), IPv6Network("fe80::/10"))
#: Reserved, although Python treats (or treated) some of them as global.
_RESERVED: Final = (
    IPv4Network("192.0.0.0/24"),
    IPv4Network("192.88.99.0/24"),
    IPv4Network("198.18.0.0/15"),
    IPv4Network("224.0.0.0/3"),
    IPv6Network("2001::/23"),
    IPv6Network("2001:db8::/32"),
    IPv6Network("2002::/16"),
    IPv6Network("3fff::/20"),
)
_GLOBAL_V6: Final = IPv6Network("2000::/3")
#: Prefixes of translated addresses: the last 32 bits are the IPv4 address.
_TRANSLATED: Final = (IPv6Network("64:ff9b::/96"), IPv6Network("::ffff:0:0/96"))
#: Marks an interface whose last 32 bits are an IPv4 address (ISATAP).
_EMBEDDED: Final = (b"\x00\x00\x5e\xfe", b"\x02\x00\x5e\xfe")


def find_address_problem(text: str, *, private: bool = False) -> str | None:
    """Return a sentence for an address that is not on the public internet; else ``None``."""
    found = _see_through(ip_address(text.partition("%")[0]))
    if found in _METADATA or _is_in(found, _LINK_LOCAL):
        return (
            f"{text} is an address that gives away credentials of this machine, or of its own link"
        )
    if not private and not _is_public(found):
        return f"{text} is not an address of the public internet"
    return None


def matches_host(host: str, pattern: str) -> bool:
    """Return whether a host is the one of a setting, or below ``*.example.org``; ``*`` is any."""
    pattern = pattern.lower().rstrip(".").strip("[]")
    if pattern == "*":
        return True
    if pattern.startswith("*."):
        return host.endswith(pattern[1:])
    return host == pattern


def _see_through(found: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address that an IPv6 address stands for, if it does."""
    if isinstance(found, IPv6Address) and _is_in(found, _TRANSLATED):
        return IPv4Address(found.packed[12:])
    return found


def _is_public(found: IPv4Address | IPv6Address) -> bool:
    if not found.is_global or found.is_multicast or _is_in(found, _RESERVED):
        return False
    if isinstance(found, IPv4Address):
        return True
    return found in _GLOBAL_V6 and found.packed[8:12] not in _EMBEDDED


def _is_in(
    found: IPv4Address | IPv6Address, networks: tuple[IPv4Network | IPv6Network, ...]
) -> bool:
    return any(found.version == one.version and found in one for one in networks)
