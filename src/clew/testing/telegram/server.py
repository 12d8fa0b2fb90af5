"""The fake server of the Bot API."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from clew.testing.faults import CallFault, FaultInjector
from clew.testing.multipart import is_multipart, parse_multipart
from clew.testing.provider.http import ResponseWriter
from clew.testing.telegram.actions import TelegramActions
from clew.testing.telegram.methods import METHODS, parse_parameters
from clew.testing.telegram.state import ApiCall, FakeTelegramError, Json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from clew.testing.provider.http import HttpRequest, WatchedReader

#: Methods exempt from faults: a channel cannot start without them.
_EXEMPT_METHODS = ("getMe", "deleteWebhook", "setMyCommands")
#: Bytes of a file in the log.
_MAX_SHOWN = 1_000_000
_CONFLICT = (
    "Conflict: terminated by other getUpdates request; make sure that only one bot instance is "
    "running"
)


class FakeTelegram(TelegramActions):
    """
    Plays Telegram for one bot, on loopback.

    ::

        with FakeTelegram() as telegram:
            settings = {"token": telegram.token, "base_url": telegram.base_url}
            telegram.post_message("Hello", user=42)

    Methods perform user actions; ``messages`` has the bot's messages, ``calls`` its calls.
    Every call is written to ``log`` as a line of JSON.
    """

    def __init__(
        self,
        *,
        token: str = "123456:fake-telegram-token",
        username: str = "clew_bot",
        faults: FaultInjector | None = None,
        log: Path | None = None,
        longest_poll: float = 25.0,
    ) -> None:
        super().__init__(faults or FaultInjector())
        self.token, self.username = token, username
        self._log = log
        self._longest_poll = longest_poll
        #: The waiting poll, with the event that ends it.
        self._poll: asyncio.Event | None = None
        #: While set, polls are accepted and never answered.
        self.hangs_polls = False

    @property
    def bot_id(self) -> int:
        return int(self.token.partition(":")[0])

    @property
    def base_url(self) -> str:
        return f"{self.url}/bot"

    async def _respond(
        self, http: HttpRequest, reader: WatchedReader, writer: asyncio.StreamWriter
    ) -> bool:
        out = ResponseWriter(writer, "telegram")
        prefix = f"/bot{self.token}/"
        if http.path.startswith(f"/file/bot{self.token}/"):
            await self._send_file(http.path, out)
            return True
        if not http.path.startswith(prefix):
            answer = {"ok": False, "error_code": 401, "description": "Unauthorized"}
            await out.send_json(401, answer)
            return True
        method = http.path.removeprefix(prefix)
        given = _parse_form(http)
        if method == "getUpdates":
            return await self._answer_poll(given, reader, out)
        return await self._answer_call(method, given, out)

    async def _send_file(self, path: str, out: ResponseWriter) -> None:
        file_id = path.split("/")[-2]
        with self._lock:
            found = self._state.files.get(file_id)
        await out.send_response(
            404 if found is None else 200, found[1] if found else b"", "text/plain"
        )

    async def _answer_call(self, method: str, given: Json, out: ResponseWriter) -> bool:
        fault = self.method_faults.pop(method, None) or (
            CallFault.NONE if method in _EXEMPT_METHODS else self.faults.next_fault()
        )
        if fault is CallFault.CUT:
            self._record_call(method, given, 0, effect=False)
            return False
        if fault is CallFault.BROKEN:
            self._record_call(method, given, 502, effect=False)
            await out.send_response(502, b"<html>Bad Gateway</html>", "text/html")
            return True
        status, answer = self._handle_call(method, given, throttled=fault is CallFault.THROTTLED)
        if fault is CallFault.LOST:
            self._record_call(method, given, 0, effect=status == 200)
            return False
        self._record_call(method, given, status, effect=status == 200)
        await out.send_json(status, answer)
        return True

    def _handle_call(self, method: str, given: Json, *, throttled: bool) -> tuple[int, Json]:
        with self._lock:
            try:
                return 200, {"ok": True, "result": self._call_method(method, given, throttled)}
            except FakeTelegramError as refusal:
                answer: Json = {
                    "ok": False,
                    "error_code": refusal.code,
                    "description": refusal.description,
                }
                if refusal.parameters:
                    answer["parameters"] = refusal.parameters
                return refusal.code, answer

    def _call_method(self, method: str, given: Json, throttled: bool) -> Any:
        if method == "getMe":
            return {
                "id": self.bot_id,
                "is_bot": True,
                "first_name": "Clew",
                "username": self.username,
            }
        if method not in METHODS:
            raise FakeTelegramError(404, "Not Found: method not found")
        if self.refuse_entities and given.get("entities"):
            raise FakeTelegramError(
                400, "Bad Request: can't parse entities: they are not liked today"
            )
        if self.refuse_documents and method == "sendDocument":
            raise FakeTelegramError(
                400, "Bad Request: not enough rights to send documents to the chat"
            )
        if "chat_id" in given:
            if throttled:
                self._state.throttle_chat(int(given["chat_id"]), self.faults.draw_wait())
            self._state.check_throttle(int(given["chat_id"]))
        return METHODS[method](self._state, given)

    def _record_call(self, method: str, given: Json, status: int, *, effect: bool) -> None:
        with self._lock:
            call = ApiCall(self._state.next_number(), time.monotonic(), method, given, status)
            self._state.calls.append(call)
            if self._log is not None:
                line = {"n": call.n, "at": time.time(), "method": method, "status": status}
                told = {**line, "effect": effect, "given": given}
                with self._log.open("a") as file:
                    file.write(json.dumps(told, default=_show_bytes) + "\n")

    # Polling

    async def _answer_poll(self, given: Json, reader: WatchedReader, out: ResponseWriter) -> bool:
        if self._poll is not None:
            # Of two concurrent polls, the first is rejected.
            self._poll.set()
        mine = self._poll = asyncio.Event()
        try:
            offset = None if "offset" not in given else int(given["offset"])
            timeout = min(float(given.get("timeout", 0)), self._longest_poll)
            status, answer = await self._wait_for_updates(offset, timeout, mine, reader)
        finally:
            if self._poll is mine:
                self._poll = None
        self._record_call("getUpdates", given, status, effect=status == 200)
        if status == 0 or self.faults.draw_chance(self.faults.cut):
            return False
        await out.send_json(status, answer)
        return True

    async def _wait_for_updates(
        self, offset: int | None, seconds: float, mine: asyncio.Event, reader: WatchedReader
    ) -> tuple[int, Json]:
        ends = time.monotonic() + seconds
        while True:
            self._news.clear()
            with self._lock:
                found = self._state.confirm_updates(offset)
                answer = self._apply_update_faults(found)
            if answer and not self.hangs_polls:
                return 200, {"ok": True, "result": answer}
            left = ends - time.monotonic()
            if left <= 0 and not self.hangs_polls:
                return 200, {"ok": True, "result": []}
            events = (self._news, mine, reader.disconnected)
            waits = [asyncio.ensure_future(event.wait()) for event in events]
            await asyncio.wait(
                waits,
                timeout=None if self.hangs_polls else left,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for wait in waits:
                wait.cancel()
            if mine.is_set():
                return 409, {"ok": False, "error_code": 409, "description": _CONFLICT}
            if reader.disconnected.is_set():
                return 0, {}

    def _apply_update_faults(self, updates: Sequence[Json]) -> list[Json]:
        found = list(updates)
        found += [one for one in updates if self.faults.draw_chance(self.faults.duplicated)]
        if self.faults.draw_chance(self.faults.reordered):
            # Across chats only: Telegram keeps the order within a chat.
            found.sort(key=lambda one: str(_chat_of(one))[::-1])
        return found


def _show_bytes(content: bytes) -> str:
    return content[:_MAX_SHOWN].decode(errors="replace")


def _parse_form(http: HttpRequest) -> Json:
    if not is_multipart(http):
        return parse_parameters(dict(parse_qsl(http.body.decode(), keep_blank_values=True)))
    fields, files = parse_multipart(http)
    told = parse_parameters(fields)
    for field, (name, content) in files.items():
        told |= {field: content, f"{field}_name": name}
    return told


def _chat_of(update: Json) -> int:
    told: Json = next(each for name, each in update.items() if name != "update_id")
    chat: Json = told.get("chat") or told["message"]["chat"]
    return chat["id"]
