"""A push service with one browser: it reads what was sealed for that, and keeps it."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from clew.features.dashboard import push_crypto as crypto
from tests.waiting import block_until

if TYPE_CHECKING:
    from collections.abc import Generator

AUTH = b"0123456789abcdef"


class PushService:
    """A push service with one browser, whose key it has."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.notices: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.status = 201
        self.url = ""

    def wait_for(self, count: int, kind: str = "answer") -> list[dict[str, Any]]:
        """Return the notices of a kind, once there are so many."""

        def found() -> list[dict[str, Any]]:
            return [one for one in self.notices if one["kind"] == kind]

        block_until(lambda: len(found()) >= count, seconds=60)
        return found()

    @contextmanager
    def running(self) -> Generator[str]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                service.headers.append({name.lower(): text for name, text in self.headers.items()})
                service.notices.append(json.loads(service.open(body)))
                self.send_response(service.status)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield self.url
        finally:
            server.shutdown()
            server.server_close()

    def open(self, body: bytes) -> bytes:
        """Read a message as the browser would."""
        salt, length = body[:16], body[20]
        theirs, sealed = body[21 : 21 + length], body[21 + length :]
        ours = crypto.public_bytes(self.key)
        peer = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), theirs)
        shared = self.key.exchange(ec.ECDH(), peer)
        secret = _derive(shared, AUTH, b"WebPush: info\0" + ours + theirs, 32)
        content_key = _derive(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
        nonce = _derive(secret, salt, b"Content-Encoding: nonce\0", 12)
        return AESGCM(content_key).decrypt(nonce, sealed, None)[:-1]

    @property
    def subscription(self) -> dict[str, Any]:
        """The browser, as it describes itself."""
        keys = {
            "p256dh": crypto.encode(crypto.public_bytes(self.key)),
            "auth": crypto.encode(AUTH),
        }
        return {"endpoint": f"{self.url}/send/1", "keys": keys}

    @property
    def script(self) -> str:
        """A browser that subscribes here: no service of a browser's maker can be reached."""
        return f"""
            let given = null
            const made = {{
              toJSON: () => ({json.dumps(self.subscription)}),
              unsubscribe: async () => {{ given = null }},
            }}
            PushManager.prototype.getSubscription = async () => given
            PushManager.prototype.subscribe = async (options) => {{
              window.applicationKey = options.applicationServerKey
              given = made
              return given
            }}
        """


def _derive(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(secret)
