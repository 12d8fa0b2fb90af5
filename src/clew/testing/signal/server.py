"""The fake daemon: JSON-RPC over HTTP, and a stream of numbered events that it remembers."""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from clew.record import Record
from clew.testing.fake_platform import FakePlatform, FakeResponse, Json
from clew.testing.multipart import SentBytes

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence
    from pathlib import Path

    from clew.testing.faults import FaultInjector
    from clew.testing.provider.http import HttpRequest, WatchedReader

ACCOUNT = "+15550783881"
MAX_LENGTH = 2000
#: Events that the daemon remembers.
_MAX_EVENTS = 1000


class SignalMessage(Record):
    """A message of the agent."""

    id: str
    chat: str
    text: str
    styles: Sequence[str]
    file: SentBytes | None = None


class _SignalError(Exception):
    """A JSON-RPC error, with the results of the recipients."""

    def __init__(self, code: int, message: str, results: Sequence[Json] = ()) -> None:
        super().__init__(message)
        self.code, self.message, self.results = code, message, results

    def to_json(self) -> Json:
        data = {"response": {"timestamp": 0, "results": list(self.results)}}
        return {"code": self.code, "message": self.message, "data": data if self.results else None}


class FakeSignal(FakePlatform):
    """
    Plays the daemon of signal-cli for one account, on loopback.

    ::

        with FakeSignal() as signal:
            settings = {"base_url": signal.url, "account": signal.account}
            signal.post_message("Hello", user="42")
    """

    def __init__(self, *, faults: FaultInjector | None = None, log: Path | None = None) -> None:
        super().__init__(faults=faults, log=log)
        self.account = ACCOUNT
        self._last = 0
        self._events: list[Json] = []
        self._told = 0
        self._streams: set[asyncio.StreamWriter] = set()
        self._sent: list[SignalMessage] = []
        self._files: dict[str, bytes] = {}
        self._failures: dict[str, Json] = {}
        self._throttled: dict[str, float] = {}
        #: Calls that people do not see: typing, receipts.
        self.hints: list[tuple[str, Json]] = []
        #: The daemon serves several accounts: each call names one.
        self.is_shared = False

    # What people do

    def post_message(self, text: str, *, user: str = "42", **more: Any) -> int:
        """Write a message to the agent; return its timestamp."""
        return self.post({"message": text, **more}, user=user)

    def post(self, message: Json, *, user: str = "42", kind: str = "dataMessage") -> int:
        """Send an envelope with a message, of any content."""
        with self._lock:
            at = self._next_time()
            whole = {"timestamp": at, "expiresInSeconds": 0, "viewOnce": False, **message}
            if kind == "editMessage":
                target = whole.pop("target")
                whole = {"targetSentTimestamp": target, "dataMessage": whole}
            self.post_envelope({kind: whole, "timestamp": at}, user=user)
            return at

    def post_envelope(self, envelope: Json, *, user: str = "42") -> None:
        who = {"source": user, "sourceUuid": user, "sourceName": f"Person {user}"}
        told = {"envelope": {**who, **envelope}, "account": self.account}
        with self._lock:
            self._events.append(told)
        self.notify_news()

    def attach_file(self, name: str, content: bytes, media_type: str) -> Json:
        """Store a file of a person, and return its description."""
        with self._lock:
            id_ = f"file{len(self._files)}"
            self._files[id_] = content
            return {
                "id": id_, "contentType": media_type, "filename": name, "size": len(content)
            }  # fmt: skip

    def fail_for(self, user: str, kind: str, **more: Any) -> None:
        """Let each message to a person end with a result such as ``UNREGISTERED_FAILURE``."""
        self._failures[user] = {"type": kind, **more}

    def throttle_user(self, user: str, seconds: float) -> None:
        with self._lock:
            self._throttled[user] = time.monotonic() + seconds

    def cut_streams(self) -> None:
        """Cut the streams of events."""
        self._loop.call_soon_threadsafe(lambda: [one.close() for one in list(self._streams)])

    # Results

    @property
    def sent(self) -> list[SignalMessage]:
        """Return the agent's messages, in order."""
        with self._lock:
            return list(self._sent)

    def list_texts(self, user: str = "42") -> list[str]:
        return [one.text for one in self.sent if one.chat == user]

    @property
    def pending_count(self) -> int:
        """Return the number of events that no stream has told yet."""
        with self._lock:
            return len(self._events) - self._told

    def _next_time(self) -> int:
        self._last = max(self._last + 1, time.time_ns() // 1_000_000)
        return self._last

    # The daemon

    async def _respond(
        self, http: HttpRequest, reader: WatchedReader, writer: asyncio.StreamWriter
    ) -> bool:
        if http.path == "/api/v1/events":
            self._streams.add(writer)
            try:
                await self._stream_events(http, writer)
            finally:
                self._streams.discard(writer)
            return False
        return await super()._respond(http, reader, writer)

    async def _stream_events(self, http: HttpRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        last = http.headers.get("last-event-id", "")
        number = int(last) if last.isdigit() else len(self._events)
        while not writer.is_closing():
            self._news.clear()
            with self._lock:
                number = max(number, len(self._events) - _MAX_EVENTS)
                due = list(enumerate(self._events[number:], start=number + 1))
            for id_, told in due:
                data = json.dumps(told, ensure_ascii=False)
                writer.write(f"id:{id_}\nevent:receive\ndata:{data}\n\n".encode())
                number = id_
            writer.write(b"" if due else b":\n\n")
            await writer.drain()
            with self._lock:
                self._told = max(self._told, number)
            await self._wait_for_news(0.5)

    def _is_exempt(self, http: HttpRequest) -> bool:
        return b'"send"' not in http.body

    def _handle_call(self, http: HttpRequest, *, throttled: bool) -> FakeResponse:
        asked: Json = json.loads(http.body)
        told: Json = {"jsonrpc": "2.0", "id": asked["id"]}
        try:
            params = dict(asked["params"])
            named = params.pop("account", None)
            if self.is_shared and asked["method"] != "listAccounts" and named != self.account:
                raise _SignalError(-32602, "Method requires valid account parameter")
            told["result"] = self._dispatch(asked["method"], params, throttled)
        except _SignalError as error:
            told["error"] = error.to_json()
        return FakeResponse(told)

    def _dispatch(self, method: str, params: Json, throttled: bool) -> object:
        if method == "listAccounts" and self.is_shared:
            return [{"number": self.account}]
        if method == "send":
            return self._take_message(params, throttled=throttled)
        if method == "getAttachment":
            if (content := self._files.get(params["id"])) is None:
                raise _SignalError(-1, "Could not find attachment with ID")
            return {"data": base64.b64encode(content).decode()}
        if method in ("sendTyping", "sendReceipt"):
            self.hints.append((method, params))
            return {}
        raise _SignalError(-32601, "Method not implemented")

    def _take_message(self, params: Json, *, throttled: bool) -> Json:
        chat: str = params.get("groupId") or params["recipient"][0]
        if throttled:
            self.throttle_user(chat, self.faults.draw_wait())
        left = self._throttled.get(chat, 0.0) - time.monotonic()
        if left > 0:
            seconds = self._throttle_seconds(chat, left)
            limit = {"type": "RATE_LIMIT_FAILURE", "retryAfterSeconds": seconds}
            raise _SignalError(-5, "Failed to send message due to rate limiting", [limit])
        if (failure := self._failures.get(chat)) is not None:
            code = -4 if failure["type"] == "IDENTITY_FAILURE" else -1
            raise _SignalError(code, "Failed to send message", [failure])
        return self._add_message(chat, params)

    def _add_message(self, chat: str, params: Json) -> Json:
        text: str = params.get("message", "")
        if not text and not params.get("attachments"):
            raise _SignalError(-1, "No message body given")
        if len(text) > MAX_LENGTH:
            raise _SignalError(-1, "Message body is too long")
        file = _read_file(params["attachments"][0]) if params.get("attachments") else None
        at = self._next_time()
        message = SignalMessage(
            id=str(at), chat=chat, text=text, styles=params.get("textStyle", ()), file=file
        )
        self._sent.append(message)
        self._write_log(n=self._next_number(), id=message.id, chat=chat, text=text)
        # The account's other devices are told, and so is this one where they send.
        return {"timestamp": at, "results": [{"type": "SUCCESS"}]}


def _read_file(address: str) -> SentBytes:
    head, _, data = address.partition(",")
    name = next(part[9:] for part in head.split(";") if part.startswith("filename="))
    return SentBytes(unquote(name), base64.b64decode(data))
