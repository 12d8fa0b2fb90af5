"""The program: a server that takes answers, and a client that hands in until it is believed."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import httpx2

from clew.gateway.channels.webhook.signing import (
    ID_HEADER,
    WebhookRejected,
    decode_secret,
    sign_request,
    verify_request,
)
from clew.testing.platform import FakePlatform, Json, Reply
from clew.testing.telegram.faults import Fault, Faults

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from clew.testing.provider.http import HttpRequest

#: Seconds between two tries to hand something in.
_PAUSE = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """A message of the agent, once."""

    n: int
    id: str
    chat: str
    thread: str | None
    text: str
    data: Json


class FakeWebhook(FakePlatform):
    """
    Plays the program behind one webhook, on loopback.

    ::

        with FakeWebhook() as there:
            settings = {"base_url": there.answers_url, "secret": there.secret}
            there.hand_to("http://127.0.0.1:8420/hooks/webhook")
            there.say("Hello", user="42")

    Whatever is handed in is sent again until it is answered with 2xx, one after the other.
    """

    def __init__(
        self,
        *,
        secret: str = "whsec_" + "c2VjcmV0IG9mIGEgZmFrZSB3ZWJob29r",
        faults: Faults | None = None,
        log: Path | None = None,
    ) -> None:
        super().__init__(faults=faults, log=log)
        self.secret = secret
        self._ids = itertools.count(1)
        self._target: str | None = None
        self._unstored: deque[tuple[str, bytes]] = deque()
        self._sent: dict[str, Sent] = {}
        self._throttled: dict[str, float] = {}
        self._refused: set[str] = set()
        #: What came of buttons that were pressed.
        self.pressed: list[Json] = []
        #: What it was told when it handed something in, in order; 0 where it was told nothing.
        self.statuses: list[int] = []

    @property
    def answers_url(self) -> str:
        """Where answers are posted."""
        return f"{self.url}/answers"

    # What people do

    def say(self, text: str, *, user: str = "42", **data: object) -> str:
        """Somebody writes; the message's id."""
        return self.tell("message", {"user": user, "text": text, **data})

    def edit(self, message: str, text: str, *, user: str = "42", **data: object) -> str:
        """Somebody changes what they wrote."""
        told = {"user": user, "message": message, "text": text, **data}
        return self.tell("message.edited", told)

    def delete(self, message: str, *, user: str = "42", **data: object) -> str:
        """Somebody takes back what they wrote."""
        return self.tell("message.deleted", {"user": user, "message": message, **data})

    def press(self, label: str, *, user: str = "42") -> str:
        """Somebody presses a button under the last message that has one."""
        under = [one for one in self.sent if one.data.get("buttons")][-1]
        data = next(each["data"] for each in under.data["buttons"] if each["label"] == label)
        told = {"user": user, "chat": under.chat, "message": under.id, "data": data}
        return self.tell("button.pressed", told)

    def tell(self, kind: str, data: Mapping[str, object]) -> str:
        """Hand an event in; its id."""
        id_ = f"evt_{next(self._ids)}"
        told = {"type": kind, "timestamp": datetime.now(UTC).isoformat(), "data": dict(data)}
        with self._lock:
            self._unstored.append((id_, json.dumps(told, ensure_ascii=False).encode()))
        return id_

    @property
    def waiting(self) -> int:
        """Events that were not stored."""
        with self._lock:
            return len(self._unstored)

    def signed(self, id_: str, body: bytes) -> Mapping[str, str]:
        """The headers of a request, as it is sent now."""
        return sign_request(decode_secret(self.secret), id_=id_, at=int(time.time()), body=body)

    async def deliver(self, hand_in: Callable[[Mapping[str, str], bytes], Awaitable[int]]) -> None:
        """Hand in what people do, for ever; ``hand_in`` returns the status of an answer."""
        while True:
            with self._lock:
                first = self._unstored[0] if self._unstored else None
            if first is None:
                await asyncio.sleep(0.005)
            elif await self._handed_in(hand_in, *first):
                with self._lock:
                    self._unstored.popleft()
            else:
                await asyncio.sleep(_PAUSE)

    async def _handed_in(
        self, hand_in: Callable[[Mapping[str, str], bytes], Awaitable[int]], id_: str, body: bytes
    ) -> bool:
        fault = self._fault_in()
        if fault is Fault.CUT:
            return False
        try:
            status = await hand_in(self.signed(id_, body), body)
        except (httpx2.HTTPError, OSError):
            status = 0
        self.statuses.append(status)
        return 200 <= status < 300 and fault is not Fault.LOST

    def _fault_in(self) -> Fault:
        """Chance alone: what a test asks for befalls the answers."""
        with self._lock:
            if self.faults.happens(self.faults.cut):
                return Fault.CUT
            return Fault.LOST if self.faults.happens(self.faults.duplicated) else Fault.NONE

    def hand_to(self, url: str) -> None:
        """From now on events are posted to this address."""
        first, self._target = self._target is None, url
        if first:
            self._loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        # Ends with the connections, when the server does.
        task = self._loop.create_task(self._post())
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _post(self) -> None:
        async with httpx2.AsyncClient(timeout=30) as client:

            async def hand_in(headers: Mapping[str, str], body: bytes) -> int:
                assert self._target is not None
                return (await client.post(self._target, content=body, headers=headers)).status_code

            await self.deliver(hand_in)

    # What is seen

    @property
    def sent(self) -> list[Sent]:
        """What the agent wrote, in order."""
        with self._lock:
            return list(self._sent.values())

    def texts(self, chat: str = "42") -> list[str]:
        return [one.text for one in self.sent if one.chat == chat]

    def throttle(self, chat: str, seconds: float) -> None:
        """Take nothing for a chat for so long."""
        with self._lock:
            self._throttled[chat] = time.monotonic() + seconds

    def refuse(self, chat: str) -> None:
        """Take nothing for a chat any more."""
        with self._lock:
            self._refused.add(chat)

    # The server

    def _is_spared(self, http: HttpRequest) -> bool:
        return False

    def _carry_out(self, http: HttpRequest, *, throttled: bool) -> Reply:
        try:
            verify_request([decode_secret(self.secret)], http.headers, http.body, now=time.time())
        except WebhookRejected as error:
            return Reply({"error": error.message}, error.status)
        data: Json = json.loads(http.body)["data"]
        chat = data["chat"]
        if throttled:
            self.throttle(chat, self.faults.wait())
        left = self._throttled.get(chat, 0.0) - time.monotonic()
        status = 429 if left > 0 else 410 if chat in self._refused else 200
        id_, n = http.headers[ID_HEADER], self._count()
        self._write(n=n, id=id_, chat=chat, status=status, text=data["text"])
        if status == 429:
            wait = {"Retry-After": str(self._waits(chat, left))}
            return Reply({"error": "too many"}, 429, wait)
        if status == 410:
            return Reply({"error": "nobody is there any more"}, 410)
        if json.loads(http.body)["type"] == "button.answered":
            self.pressed.append(data)
        elif id_ not in self._sent:
            self._sent[id_] = Sent(
                n=n, id=id_, chat=chat, thread=data["thread"], text=data["text"], data=data
            )
        return Reply({"id": id_})
