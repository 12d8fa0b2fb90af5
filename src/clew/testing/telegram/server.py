"""The server, and what tests say and see of it."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from clew.testing.provider.http import Outbound
from clew.testing.telegram.faults import Fault, Faults
from clew.testing.telegram.methods import METHODS, parsed
from clew.testing.telegram.people import People
from clew.testing.telegram.world import Call, Json, Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from clew.testing.provider.http import HttpRequest, Watched

#: Methods that faults spare: without them nothing would begin.
_SPARED = ("getMe", "deleteWebhook", "setMyCommands")
_CONFLICT = (
    "Conflict: terminated by other getUpdates request; make sure that only one bot instance is "
    "running"
)


class FakeTelegram(People):
    """
    Plays Telegram for one bot, on loopback.

    ::

        with FakeTelegram() as telegram:
            settings = {"token": telegram.token, "base_url": telegram.base_url}
            telegram.say("Hello", user=42)

    What people do are its methods; what the bot wrote is in ``messages``, what it asked for in
    ``calls``. Every call is written to ``log``, a line of JSON each.
    """

    def __init__(
        self,
        *,
        token: str = "123456:fake-telegram-token",
        username: str = "clew_bot",
        faults: Faults | None = None,
        log: Path | None = None,
        longest_poll: float = 25.0,
    ) -> None:
        super().__init__(faults or Faults())
        self.token, self.username = token, username
        self._log = log
        self._longest_poll = longest_poll
        #: The poll that waits, and what ends it.
        self._poll: asyncio.Event | None = None
        #: While set, polls are taken and never answered.
        self.black_hole = False

    @property
    def id(self) -> int:
        return int(self.token.partition(":")[0])

    @property
    def base_url(self) -> str:
        return f"{self.url}/bot"

    async def _respond(
        self, http: HttpRequest, reader: Watched, writer: asyncio.StreamWriter
    ) -> bool:
        out = Outbound(writer, "telegram")
        prefix = f"/bot{self.token}/"
        if http.path.startswith(f"/file/bot{self.token}/"):
            await self._file(http.path, out)
            return True
        if not http.path.startswith(prefix):
            answer = {"ok": False, "error_code": 401, "description": "Unauthorized"}
            await out.send_json(401, answer)
            return True
        method = http.path.removeprefix(prefix)
        given = parsed(dict(parse_qsl(http.body.decode(), keep_blank_values=True)))
        if method == "getUpdates":
            return await self._updates(given, reader, out)
        return await self._call(method, given, out)

    async def _file(self, path: str, out: Outbound) -> None:
        file_id = path.split("/")[-2]
        with self._lock:
            found = self._world.files.get(file_id)
        await out.send(404 if found is None else 200, found[1] if found else b"", "text/plain")

    async def _call(self, method: str, given: Json, out: Outbound) -> bool:
        fault = Fault.NONE if method in _SPARED else self.faults.next()
        if fault is Fault.CUT:
            self._record(method, given, 0, effect=False)
            return False
        if fault is Fault.BROKEN:
            self._record(method, given, 502, effect=False)
            await out.send(502, b"<html>Bad Gateway</html>", "text/html")
            return True
        status, answer = self._carry_out(method, given, throttled=fault is Fault.THROTTLED)
        if fault is Fault.LOST:
            self._record(method, given, 0, effect=status == 200)
            return False
        self._record(method, given, status, effect=status == 200)
        await out.send_json(status, answer)
        return True

    def _carry_out(self, method: str, given: Json, *, throttled: bool) -> tuple[int, Json]:
        with self._lock:
            try:
                return 200, {"ok": True, "result": self._result(method, given, throttled)}
            except Refusal as refusal:
                answer: Json = {
                    "ok": False,
                    "error_code": refusal.code,
                    "description": refusal.description,
                }
                if refusal.parameters:
                    answer["parameters"] = refusal.parameters
                return refusal.code, answer

    def _result(self, method: str, given: Json, throttled: bool) -> Any:
        if method == "getMe":
            return {
                "id": self.id,
                "is_bot": True,
                "first_name": "Clew",
                "username": self.username,
            }
        if method not in METHODS:
            raise Refusal(404, "Not Found: method not found")
        if self.refuse_entities and given.get("entities"):
            raise Refusal(400, "Bad Request: can't parse entities: they are not liked today")
        if "chat_id" in given:
            if throttled:
                self._world.throttle(int(given["chat_id"]), self.faults.wait())
            self._world.check_throttle(int(given["chat_id"]))
        return METHODS[method](self._world, given)

    def _record(self, method: str, given: Json, status: int, *, effect: bool) -> None:
        with self._lock:
            call = Call(self._world.count(), time.monotonic(), method, given, status, effect)
            self._world.calls.append(call)
            if self._log is not None:
                line = {"n": call.n, "at": time.time(), "method": method, "status": status}
                with self._log.open("a") as file:
                    file.write(json.dumps({**line, "effect": effect, "given": given}) + "\n")

    # Polling

    async def _updates(self, given: Json, reader: Watched, out: Outbound) -> bool:
        if self._poll is not None:
            # Of two who poll, the first is sent away.
            self._poll.set()
        mine = self._poll = asyncio.Event()
        try:
            offset = None if "offset" not in given else int(given["offset"])
            timeout = min(float(given.get("timeout", 0)), self._longest_poll)
            status, answer = await self._polled(offset, timeout, mine, reader)
        finally:
            if self._poll is mine:
                self._poll = None
        self._record("getUpdates", given, status, effect=status == 200)
        if status == 0 or self.faults.happens(self.faults.cut):
            return False
        await out.send_json(status, answer)
        return True

    async def _polled(
        self, offset: int | None, seconds: float, mine: asyncio.Event, reader: Watched
    ) -> tuple[int, Json]:
        ends = time.monotonic() + seconds
        while True:
            self._news.clear()
            with self._lock:
                found = self._world.unconfirmed(offset)
                answer = self._disordered(found)
            if answer and not self.black_hole:
                return 200, {"ok": True, "result": answer}
            left = ends - time.monotonic()
            if left <= 0 and not self.black_hole:
                return 200, {"ok": True, "result": []}
            events = (self._news, mine, reader.gone)
            waits = [asyncio.ensure_future(event.wait()) for event in events]
            await asyncio.wait(
                waits,
                timeout=None if self.black_hole else left,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for wait in waits:
                wait.cancel()
            if mine.is_set():
                return 409, {"ok": False, "error_code": 409, "description": _CONFLICT}
            if reader.gone.is_set():
                return 0, {}

    def _disordered(self, updates: Sequence[Json]) -> list[Json]:
        found = list(updates)
        found += [one for one in updates if self.faults.happens(self.faults.duplicated)]
        if self.faults.happens(self.faults.reordered):
            # Of two chats, never of one: Telegram keeps that order.
            found.sort(key=lambda one: str(_chat_of(one))[::-1])
        return found


def _chat_of(update: Json) -> int:
    told: Json = next(each for name, each in update.items() if name != "update_id")
    chat: Json = told.get("chat") or told["message"]["chat"]
    return chat["id"]
