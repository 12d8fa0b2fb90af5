"""Request signatures per Standard Webhooks, over id, time and body; pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import TYPE_CHECKING

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER = (
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
)
_SECRET_PREFIX = "whsec_"
_VERSION = "v1"
#: Seconds by which two clocks may differ, and for which a request is valid.
TIMESTAMP_TOLERANCE = 300
#: Maximum characters of an id.
MAX_ID_LENGTH = 200


class WebhookRejected(Exception):
    """A request that is not authentic or is malformed, with the response for it."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class WebhookSignature(Record):
    """The signed metadata of a request."""

    id: str
    #: Seconds since the epoch.
    at: int


def decode_secret(secret: str) -> bytes:
    """
    Return the key of a secret: ``whsec_`` and Base64, or any other text as it is.

    :raises ValueError: if it begins with ``whsec_`` and the rest is not Base64
    """
    if not secret.startswith(_SECRET_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)
    except binascii.Error:
        raise ValueError("behind whsec_ there is no Base64") from None


def sign_request(key: bytes, *, id_: str, at: int, body: bytes) -> Mapping[str, str]:
    """Return the signature headers of a request."""
    return {
        ID_HEADER: id_,
        TIMESTAMP_HEADER: str(at),
        SIGNATURE_HEADER: _compute_signature(key, id_, str(at), body),
    }


def _compute_signature(key: bytes, id_: str, at: str, body: bytes) -> str:
    content = b".".join([id_.encode(), at.encode(), body])
    digest = hmac.new(key, content, hashlib.sha256).digest()
    return f"{_VERSION},{base64.b64encode(digest).decode()}"


def verify_request(
    keys: Sequence[bytes], headers: Mapping[str, str], body: bytes, *, now: float
) -> WebhookSignature:
    """
    Verify that a request is signed with one of the keys and recent.

    :raises WebhookRejected: if it is not
    """
    id_, at, given = (
        _get_header(headers, name) for name in (ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER)
    )
    # Several signatures are separated by spaces: a sender that rotates its key signs with both.
    signatures = [one.encode() for one in given.split()]
    wanted = [_compute_signature(key, id_, at, body).encode() for key in keys]
    # Every pair is compared, so that timing reveals nothing.
    if not sum(hmac.compare_digest(one, two) for one in signatures for two in wanted):
        raise WebhookRejected(
            401,
            "invalid_signature",
            f"{SIGNATURE_HEADER} is not the signature of this request: it is v1, and the "
            "Base64 of the "
            "HMAC-SHA256 of ID.TIMESTAMP.BODY, by the secret in the settings",
        )
    if not (at.isascii() and at.isdigit()) or abs(now - int(at)) > TIMESTAMP_TOLERANCE:
        raise WebhookRejected(
            400,
            "stale_timestamp",
            f"{TIMESTAMP_HEADER} is {at[:20]!r}, more than {TIMESTAMP_TOLERANCE} seconds away "
            f"from the time here, {now:.0f}: set the clocks, and sign each attempt separately",
        )
    if len(id_) > MAX_ID_LENGTH:
        raise WebhookRejected(
            400, "invalid_value", f"{ID_HEADER} has more than {MAX_ID_LENGTH} characters"
        )
    return WebhookSignature(id=id_, at=int(at))


def _get_header(headers: Mapping[str, str], name: str) -> str:
    if value := headers.get(name, "").strip():
        return value
    raise WebhookRejected(400, "missing_header", f"the header {name} is missing")
