"""Encryption and identification of push messages: RFC 8188, 8291 and 8292."""

from __future__ import annotations

import base64
import json
import os
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

#: Bytes of a message that every push service takes.
MAX_PAYLOAD: Final = 3000
_RECORD_SIZE: Final = 4096
_CURVE: Final = ec.SECP256R1()
_LAST_RECORD: Final = b"\x02"
#: Seconds for which an identification holds: services take at most a day.
_TOKEN_LIFETIME: Final = 12 * 3600


def encode(data: bytes) -> str:
    """Return bytes in base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """Return the bytes of a text in base64url, with or without padding."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def make_private_key() -> str:
    """Return a new private key, as text for the store."""
    key = ec.generate_private_key(_CURVE)
    return encode(key.private_numbers().private_value.to_bytes(32, "big"))


def load_private_key(text: str) -> EllipticCurvePrivateKey:
    """Return the private key of a text from the store."""
    return ec.derive_private_key(int.from_bytes(decode(text), "big"), _CURVE)


def public_bytes(key: EllipticCurvePrivateKey) -> bytes:
    """Return the public part of a key as an uncompressed point."""
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def check_keys(p256dh: str, auth: str) -> bool:
    """Return whether the keys of a browser can be used."""
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, decode(p256dh))
        return len(decode(auth)) == 16
    except ValueError:
        return False


def encrypt(
    payload: bytes,
    p256dh: str,
    auth: str,
    *,
    salt: bytes | None = None,
    key: EllipticCurvePrivateKey | None = None,
) -> bytes:
    """
    Return a message that only one browser can read, in the encoding ``aes128gcm``.

    ``salt`` and ``key`` are made anew for each message; only tests of vectors name them.
    """
    salt, key = salt or os.urandom(16), key or ec.generate_private_key(_CURVE)
    theirs, ours = decode(p256dh), public_bytes(key)
    peer = ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, theirs)
    shared = key.exchange(ec.ECDH(), peer)
    secret = _derive(shared, decode(auth), b"WebPush: info\0" + theirs + ours, 32)
    content_key = _derive(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derive(secret, salt, b"Content-Encoding: nonce\0", 12)
    sealed = AESGCM(content_key).encrypt(nonce, payload + _LAST_RECORD, None)
    return salt + _RECORD_SIZE.to_bytes(4, "big") + bytes([len(ours)]) + ours + sealed


def make_authorization(
    endpoint: str, key: EllipticCurvePrivateKey, *, contact: str, now: int
) -> str:
    """Return the header that tells a push service who sends; ``now`` in seconds."""
    parts = urlsplit(endpoint)
    claims = {
        "aud": f"{parts.scheme}://{parts.netloc}",
        "exp": now + _TOKEN_LIFETIME,
        "sub": contact,
    }
    signed = ".".join(encode(json.dumps(one).encode()) for one in (_HEADER, claims))
    r, s = utils.decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    signature = encode(r.to_bytes(32, "big") + s.to_bytes(32, "big"))
    return f"vapid t={signed}.{signature}, k={encode(public_bytes(key))}"


_HEADER: Final = {"typ": "JWT", "alg": "ES256"}


def _derive(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(secret)
