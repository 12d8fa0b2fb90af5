"""Proofs that a request comes from Meta; pure."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SIGNATURE_HEADER: Final = "x-hub-signature-256"
_PREFIX: Final = "sha256="


def sign_body(secret: bytes, body: bytes) -> str:
    """Return the value of the signature's header."""
    return _PREFIX + hmac.new(secret, body, hashlib.sha256).hexdigest()


def is_signed(secret: bytes, headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether a body is signed with the app's secret, in constant time."""
    given = headers.get(SIGNATURE_HEADER, "").encode("utf-8", "replace")
    return hmac.compare_digest(given, sign_body(secret, body).encode())


def read_challenge(verify_token: bytes, query: Mapping[str, str]) -> str | None:
    """Return the challenge to answer; ``None`` if the request does not know the token."""
    given = query.get("hub.verify_token", "").encode("utf-8", "replace")
    known = hmac.compare_digest(given, verify_token)
    return (
        query.get("hub.challenge", "") if known and query.get("hub.mode") == "subscribe" else None
    )
