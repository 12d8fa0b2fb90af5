"""The fake program: receives answers, and posts events until they are accepted."""

from __future__ import annotations

import itertools
import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from clew.features.webhooks.signing import (
    ID_HEADER,
    WebhookRejected,
    decode_secret,
    sign_request,
    verify_request,
)
from clew.record import Record
from clew.testing.event_poster import EventPoster
from clew.testing.fake_platform import FakeResponse, Json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from clew.testing.faults import FaultInjector
    from clew.testing.provider.http import HttpRequest


class WebhookMessage(Record):
    """A message of the agent, without repeats."""

    n: int
    id: str
    chat: str
    thread: str | None
    text: str
    data: Json


class FakeWebhook(EventPoster):
    """
    Plays the program behind one webhook, on loopback.

    ::

        with FakeWebhook() as webhook:
            settings = {"base_url": webhook.answers_url, "secret": webhook.secret}
            webhook.set_target("http://127.0.0.1:8420/hooks/webhook")
            webhook.post_message("Hello", user="42")

    Events are posted one by one, each until it is answered with 2xx.
    """

    def __init__(
        self,
        *,
        secret: str = "whsec_" + "c2VjcmV0IG9mIGEgZmFrZSB3ZWJob29r",
        faults: FaultInjector | None = None,
        log: Path | None = None,
    ) -> None:
        super().__init__(faults=faults, log=log)
        self.secret = secret
        self._ids = itertools.count(1)
        self._sent: dict[str, WebhookMessage] = {}
        self._throttled: dict[str, float] = {}
        self._refused: set[str] = set()
        #: Answers to pressed buttons.
        self.button_answers: list[Json] = []

    @property
    def answers_url(self) -> str:
        """Return the URL to which answers are posted."""
        return f"{self.url}/answers"

    # User actions

    def post_message(self, text: str, *, user: str = "42", **data: object) -> str:
        """Post a message of a person; return its id."""
        return self.add_event("message", {"user": user, "text": text, **data})

    def edit_message(self, message: str, text: str, *, user: str = "42", **data: object) -> str:
        """Edit a person's message."""
        told = {"user": user, "message": message, "text": text, **data}
        return self.add_event("message.edited", told)

    def delete_message(self, message: str, *, user: str = "42", **data: object) -> str:
        """Delete a person's message."""
        return self.add_event("message.deleted", {"user": user, "message": message, **data})

    def press_button(self, label: str, *, user: str = "42") -> str:
        """Press a button under the last message that has any."""
        under = [one for one in self.sent if one.data.get("buttons")][-1]
        data = next(each["data"] for each in under.data["buttons"] if each["label"] == label)
        told = {"user": user, "chat": under.chat, "message": under.id, "data": data}
        return self.add_event("button.pressed", told)

    def add_event(self, kind: str, data: Mapping[str, object]) -> str:
        """Queue an event for posting; return its id."""
        id_ = f"evt_{next(self._ids)}"
        told = {"type": kind, "timestamp": datetime.now(UTC).isoformat(), "data": dict(data)}
        self._queue_event(id_, json.dumps(told, ensure_ascii=False).encode())
        return id_

    def sign_headers(self, id_: str, body: bytes) -> Mapping[str, str]:
        return sign_request(decode_secret(self.secret), id_=id_, at=int(time.time()), body=body)

    # Results

    @property
    def sent(self) -> list[WebhookMessage]:
        """Return the agent's messages, in order."""
        with self._lock:
            return list(self._sent.values())

    def list_texts(self, chat: str = "42") -> list[str]:
        return [one.text for one in self.sent if one.chat == chat]

    def throttle_chat(self, chat: str, seconds: float) -> None:
        """Refuse all messages to a chat for ``seconds``."""
        with self._lock:
            self._throttled[chat] = time.monotonic() + seconds

    def refuse_chat(self, chat: str) -> None:
        """Refuse all messages to a chat permanently."""
        with self._lock:
            self._refused.add(chat)

    def accept_chat(self, chat: str) -> None:
        """Take messages to a chat again."""
        with self._lock:
            self._refused.discard(chat)

    # The server

    def _is_exempt(self, http: HttpRequest) -> bool:
        return False

    def _handle_call(self, http: HttpRequest, *, throttled: bool) -> FakeResponse:
        try:
            verify_request([decode_secret(self.secret)], http.headers, http.body, now=time.time())
        except WebhookRejected as error:
            return FakeResponse({"error": error.message}, error.status)
        data: Json = json.loads(http.body)["data"]
        chat = data["chat"]
        if throttled:
            self.throttle_chat(chat, self.faults.draw_wait())
        left = self._throttled.get(chat, 0.0) - time.monotonic()
        status = 429 if left > 0 else 410 if chat in self._refused else 200
        id_, n = http.headers[ID_HEADER], self._next_number()
        self._write_log(n=n, id=id_, chat=chat, status=status, text=data["text"])
        if status == 429:
            wait = {"Retry-After": str(self._throttle_seconds(chat, left))}
            return FakeResponse({"error": "too many"}, 429, wait)
        if status == 410:
            return FakeResponse({"error": "nobody is there any more"}, 410)
        if json.loads(http.body)["type"] == "button.answered":
            self.button_answers.append(data)
        elif id_ not in self._sent:
            self._sent[id_] = WebhookMessage(
                n=n, id=id_, chat=chat, thread=data["thread"], text=data["text"], data=data
            )
        return FakeResponse({"id": id_})
