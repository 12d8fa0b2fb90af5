"""Signatures as Standard Webhooks has them, over id, time and body: none can be changed; pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
_PREFIX = "whsec_"
_VERSION = "v1"
#: Seconds by which the clocks of two machines may differ, and for which a request can be used.
WINDOW = 300
#: Characters of an id.
_LONGEST_ID = 200


class Refused(Exception):
    """What came is not to be believed, or cannot be read: what is answered."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


@dataclass(frozen=True, kw_only=True, slots=True)
class Signed:
    """What a request says of itself, and its signature vouches for."""

    id: str
    #: Seconds since the epoch.
    at: int


def key_of(secret: str) -> bytes:
    """
    The key that a secret stands for: ``whsec_`` and Base64, or any other text as it is.

    :raises ValueError: if it begins with ``whsec_`` and is no Base64
    """
    if not secret.startswith(_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        raise ValueError("behind whsec_ there is no Base64") from None


def sign(key: bytes, *, id_: str, at: int, body: bytes) -> Mapping[str, str]:
    """The headers of a request."""
    return {ID: id_, TIMESTAMP: str(at), SIGNATURE: _signature(key, id_, str(at), body)}


def _signature(key: bytes, id_: str, at: str, body: bytes) -> str:
    content = b".".join([id_.encode(), at.encode(), body])
    digest = hmac.new(key, content, hashlib.sha256).digest()
    return f"{_VERSION},{base64.b64encode(digest).decode()}"


def verified(
    keys: Sequence[bytes], headers: Mapping[str, str], body: bytes, *, now: float
) -> Signed:
    """
    Who sent it has one of the keys, and sent it now.

    :raises Refused: if not
    """
    id_, at, given = (_header(headers, name) for name in (ID, TIMESTAMP, SIGNATURE))
    # Several are separated by spaces: a sender that changes its key signs with both.
    signatures = [one.encode() for one in given.split()]
    wanted = [_signature(key, id_, at, body).encode() for key in keys]
    # Every pair is compared, so that the time says nothing.
    if not sum(hmac.compare_digest(one, two) for one in signatures for two in wanted):
        raise Refused(
            401,
            "invalid_signature",
            f"{SIGNATURE} is not the signature of this request: it is v1, and the Base64 of the "
            "HMAC-SHA256 of ID.TIMESTAMP.BODY, by the secret in the settings",
        )
    if not (at.isascii() and at.isdigit()) or abs(now - int(at)) > WINDOW:
        raise Refused(
            400,
            "stale_timestamp",
            f"{TIMESTAMP} is {at[:20]!r}, more than {WINDOW} seconds away from the time here, "
            f"{now:.0f}: set the clocks, and sign each attempt anew",
        )
    if len(id_) > _LONGEST_ID:
        raise Refused(400, "invalid_value", f"{ID} has more than {_LONGEST_ID} characters")
    return Signed(id=id_, at=int(at))


def _header(headers: Mapping[str, str], name: str) -> str:
    if value := headers.get(name, "").strip():
        return value
    raise Refused(400, "missing_header", f"the header {name} is missing")
