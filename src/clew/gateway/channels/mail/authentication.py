"""Whether a mail is from the domain that its sender names, by the own server's word; pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: The most headers that are read, and characters of one: longer ones are not of a server.
_MAX_HEADERS, _MAX_LENGTH = 20, 4_000
_COMMENT = re.compile(r"\((?:[^()\\]|\\.)*\)")
_PROPERTY = re.compile(r"([a-z][\w-]*)\.([a-z][\w-]*)\s*=\s*(?:\"([^\"]*)\"|([^\s;\"]+))")


class AuthenticationResult(Record):
    """One method's result: ``dkim=pass header.d=example.org``."""

    method: str
    result: str
    #: By name, such as ``header.d``; in lower case.
    properties: dict[str, str]


def is_authenticated(headers: Sequence[str], *, authserv_id: str, domain: str) -> bool:
    """
    Return whether DKIM, SPF or DMARC passed for the domain of the sender.

    Only the topmost ``Authentication-Results`` of the own server counts: those further down may
    have come with the mail. A signature counts for its own domain and those below it.
    """
    told = (
        rest for name, rest in map(_split_id, headers[:_MAX_HEADERS]) if name == authserv_id.lower()
    )
    results = list(_parse_results(next(told, "")))
    if any(one.method == "dmarc" and one.result == "fail" for one in results):
        return False
    return any(_proves(one, domain.lower()) for one in results)


def _split_id(text: str) -> tuple[str, str]:
    # From the inside out: comments may be nested.
    plain = " ".join(text[:_MAX_LENGTH].split()).lower()
    while (shorter := _COMMENT.sub(" ", plain)) != plain:
        plain = shorter
    name, _, rest = plain.partition(";")
    words = name.split()
    return (words[0].strip('"') if words else ""), rest


def _parse_results(text: str) -> Iterator[AuthenticationResult]:
    for part in text.split(";"):
        found = re.match(r"\s*([a-z][\w-]*)(?:\s*/\s*\d+)?\s*=\s*([a-z]+)", part)
        if found:
            told = {f"{a}.{b}": c or d for a, b, c, d in _PROPERTY.findall(part)}
            yield AuthenticationResult(method=found[1], result=found[2], properties=told)


def _proves(one: AuthenticationResult, domain: str) -> bool:
    if one.result != "pass":
        return False
    told = one.properties
    match one.method:
        case "dkim":
            signer = told.get("header.d") or told.get("header.i", "").rpartition("@")[2]
            return _covers(signer, domain)
        case "spf":
            return _covers(told.get("smtp.mailfrom", "").rpartition("@")[2], domain)
        case "dmarc":
            return told.get("header.from", "").rpartition("@")[2].rstrip(".") == domain
        case _:
            return False


def _covers(signer: str, domain: str) -> bool:
    signer = signer.rstrip(".")
    # A single label, such as "org", has no mail.
    return "." in signer and (domain == signer or domain.endswith(f".{signer}"))
