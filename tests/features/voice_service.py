"""A service that hears and speaks, as OpenAI's, with the failures that such services have."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from clew.testing.multipart import parse_multipart
from clew.testing.provider.http import HttpRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

#: An answer: a text that was heard, a status, a whole body, or nothing for ever.
Heard = str | int | bytes | None


def make_ogg(name: str, seconds: int = 12) -> bytes:
    """Return what begins and ends as an Ogg Opus recording of this length."""
    page = b"OggS\0\x02" + bytes(20) + b"\x01\x13OpusHead" + name.encode()
    end = b"OggS\0\x04" + (seconds * 48_000).to_bytes(8, "little") + bytes(12)
    return page + end


@dataclass(frozen=True)
class Asked:
    path: str
    authorization: str | None
    fields: dict[str, str]
    content: bytes


class VoiceServer:
    """The service; ``hear`` says what it answers to a recording."""

    def __init__(self, hear: Callable[[bytes], Heard] = lambda _: "hello") -> None:
        self.hear = hear
        self.speech: Heard = make_ogg("speech", 6)
        self.asked: list[Asked] = []
        self.url = ""
        self._over = threading.Event()

    def count(self, path: str) -> int:
        return sum(one.path.endswith(path) for one in self.asked)

    @contextmanager
    def running(self, port: int = 0) -> Generator[VoiceServer]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                if len(body := self.rfile.read(length)) < length:
                    return  # whoever asked was killed
                status, content = service.respond(self.path, dict(self.headers.items()), body)
                self.send_response(status)
                if status == 429:
                    self.send_header("Retry-After", "0")
                self.send_header("Content-Length", str(len(content)))
                with suppress(ConnectionError):  # whoever asked was killed
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        server.daemon_threads = True
        server.block_on_close = False
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        try:
            yield self
        finally:
            self._over.set()
            server.shutdown()
            server.server_close()

    def respond(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        by_name = {name.lower(): text for name, text in headers.items()}
        if path.endswith("/speech"):
            fields, content, heard = json.loads(body), b"", self.speech
        else:
            fields, content = _read_form(by_name["content-type"], body)
            heard = self.hear(content)
        self.asked.append(Asked(path, by_name.get("authorization"), fields, content))
        match heard:
            case None:
                self._over.wait()
                return 200, b"{}"
            case bytes():
                return 200, heard
            case int():
                told = {"error": {"message": "the key sk-of-the-test-12345 is\nover its limit"}}
                return heard, json.dumps(told).encode()
            case str():
                usage = {"type": "duration", "seconds": 30}
                return 200, json.dumps({"text": heard, "usage": usage}).encode()


def _read_form(content_type: str, body: bytes) -> tuple[dict[str, str], bytes]:
    http = HttpRequest(method="POST", path="/", headers={"content-type": content_type}, body=body)
    fields, files = parse_multipart(http)
    name, content = files["file"]
    return {**fields, "filename": name}, content
