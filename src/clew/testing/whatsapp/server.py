"""The fake server: the Cloud API, and webhooks that are posted until they are accepted."""

from __future__ import annotations

import itertools
import json
import re
import time
from typing import TYPE_CHECKING, Any

from clew.features.whatsapp.signing import SIGNATURE_HEADER, sign_body
from clew.testing.event_poster import EventPoster
from clew.testing.fake_platform import FakeResponse
from clew.testing.multipart import SentBytes, is_multipart, parse_multipart
from clew.testing.whatsapp.state import (
    UPLOAD_TYPES,
    FakeWhatsAppError,
    Json,
    WhatsAppMessage,
    read_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from clew.testing.faults import FaultInjector
    from clew.testing.provider.http import HttpRequest

NUMBER_ID, NUMBER = "106540352242922", "15550783881"


class FakeWhatsApp(EventPoster):
    """
    Plays WhatsApp for one phone number of a business, on loopback.

    ::

        with FakeWhatsApp() as whatsapp:
            settings = {"base_url": whatsapp.url, **whatsapp.settings}
            whatsapp.set_target("http://127.0.0.1:8420/whatsapp/whatsapp")
            whatsapp.post_message("Hello", user="4915100000042")

    Each message of the agent is followed by webhooks that tell its status.
    """

    def __init__(self, *, faults: FaultInjector | None = None, log: Path | None = None) -> None:
        super().__init__(faults=faults, log=log)
        self.token, self.app_secret, self.verify_token = "fake-token", "fake-app-secret", "verify"
        self._ids = itertools.count(1)
        self._sent: list[WhatsAppMessage] = []
        self._media: dict[str, tuple[str, str, bytes]] = {}
        self._throttled: dict[str, float] = {}
        self._blocked: set[str] = set()
        #: People whose 24 hours are over; whether the API says so itself, or a status does.
        self._closed: dict[str, bool] = {}
        self._templates: set[str] = set()
        #: Payloads that marked a message as read.
        self.read_marks: list[Json] = []
        #: Statuses are held back while this is so.
        self.holds_statuses = False
        self._held: list[Json] = []

    @property
    def settings(self) -> Mapping[str, object]:
        """Return the settings of the channel, besides its ``base_url``."""
        return {
            "token": self.token,
            "phone_number_id": NUMBER_ID,
            "app_secret": self.app_secret,
            "verify_token": self.verify_token,
        }

    # What people do

    def post_message(self, text: str, *, user: str = "42", **more: Any) -> str:
        """Post a text of a person; return its id."""
        return self.post({"type": "text", "text": {"body": text}, **more}, user=user)

    def post(self, message: Json, *, user: str = "42") -> str:
        """Post a message of a person, of any type; return its id."""
        with self._lock:
            self._closed.pop(user, None)
            id_ = f"wamid.in.{next(self._ids)}"
            whole = {"from": user, "id": id_, "timestamp": str(int(time.time())), **message}
            contact = {"profile": {"name": f"Person {user}"}, "wa_id": user}
            self.post_change({"contacts": [contact], "messages": [whole]})
            return id_

    def post_change(self, value: Json) -> None:
        """Post a webhook with one change."""
        metadata = {"display_phone_number": NUMBER, "phone_number_id": NUMBER_ID}
        told = {"messaging_product": "whatsapp", "metadata": metadata, **value}
        self.post_payload([{"id": "1", "changes": [{"field": "messages", "value": told}]}])

    def post_payload(self, entries: Sequence[Json]) -> None:
        body = json.dumps({"object": "whatsapp_business_account", "entry": entries})
        self._queue_event("", body.encode())

    def press_button(self, label: str, *, user: str = "42") -> str:
        """Press a button, or choose a row, of the last message that has any."""
        under = [one for one in self.sent if one.to == user and one.kind == "interactive"][-1]
        action = under.payload["interactive"]["action"]
        replies = [one["reply"] for one in action.get("buttons", ())]
        rows = [row for one in action.get("sections", ()) for row in one["rows"]]
        chosen = next(one for one in [*replies, *rows] if one["title"] == label)
        kind = "button_reply" if replies else "list_reply"
        told = {
            "type": "interactive",
            "context": {"from": NUMBER, "id": under.id},
            "interactive": {"type": kind, kind: chosen},
        }
        return self.post(told, user=user)

    def attach_file(self, name: str, content: bytes, media_type: str) -> Json:
        """Store a file of a person, and return its description."""
        with self._lock:
            id_ = str(next(self._ids))
            self._media[id_] = (name, media_type, content)
            return {"id": id_, "mime_type": media_type, "filename": name, "sha256": "x"}

    def block_agent(self, user: str) -> None:
        self._blocked.add(user)

    def close_window(self, user: str, *, at_once: bool = True) -> None:
        """Let 24 hours pass: the API refuses messages, or a status tells the failure later."""
        self._closed[user] = at_once

    def add_template(self, name: str) -> None:
        """Approve a template."""
        self._templates.add(name)

    def throttle_user(self, user: str, seconds: float) -> None:
        with self._lock:
            self._throttled[user] = time.monotonic() + seconds

    def release_statuses(self) -> None:
        """Post the statuses that were held back, and hold back no more."""
        with self._lock:
            self.holds_statuses = False
            held, self._held = self._held, []
            for value in held:
                self.post_change(value)

    # Results

    @property
    def sent(self) -> list[WhatsAppMessage]:
        """Return the agent's messages that arrived, in order."""
        with self._lock:
            return list(self._sent)

    def list_texts(self, user: str = "42") -> list[str]:
        return [one.text for one in self.sent if one.to == user]

    def sign_headers(self, id_: str, body: bytes) -> Mapping[str, str]:
        signature = sign_body(self.app_secret.encode(), body)
        return {SIGNATURE_HEADER: signature, "content-type": "application/json"}

    # The API

    def _is_exempt(self, http: HttpRequest) -> bool:
        # Uploads and read marks change nothing that people see.
        return not http.path.endswith("/messages") or b'"status"' in http.body

    def _handle_call(self, http: HttpRequest, *, throttled: bool) -> FakeResponse:
        try:
            if http.headers.get("authorization") != f"Bearer {self.token}":
                raise FakeWhatsAppError(401, 190, "Error validating access token")
            return self._dispatch(http, throttled=throttled)
        except FakeWhatsAppError as refusal:
            return FakeResponse(refusal.to_json(), refusal.status)

    def _dispatch(self, http: HttpRequest, *, throttled: bool) -> FakeResponse:
        path = re.sub(r"^/v\d+\.\d+", "", http.path)
        if (http.method, path) == ("POST", f"/{NUMBER_ID}/messages"):
            return self._take_message(json.loads(http.body), throttled=throttled)
        if (http.method, path) == ("POST", f"/{NUMBER_ID}/media"):
            return self._take_media(http)
        if (http.method, path) == ("GET", f"/{NUMBER_ID}"):
            return FakeResponse({"id": NUMBER_ID, "display_phone_number": "+1 555-078-3881"})
        name = path.rpartition("/")[2]
        if http.method == "GET" and name in self._media:
            _, media_type, content = self._media[name]
            if path.startswith("/content/"):
                return FakeResponse(content, media=media_type)
            url = f"{self.url}/content/{name}"
            told = {"id": name, "url": url, "mime_type": media_type, "file_size": len(content)}
            return FakeResponse(told)
        raise FakeWhatsAppError(400, 100, "Unsupported request, or no such object")

    def _take_media(self, http: HttpRequest) -> FakeResponse:
        if not is_multipart(http):
            raise FakeWhatsAppError(400, 100, "The parameter file is required.")
        fields, files = parse_multipart(http)
        if fields.get("type") not in UPLOAD_TYPES or fields["messaging_product"] != "whatsapp":
            raise FakeWhatsAppError(400, 100, "Param file must be a file with one of the types")
        id_ = str(next(self._ids))
        self._media[id_] = (files["file"][0], fields["type"], files["file"][1])
        return FakeResponse({"id": id_})

    def _take_message(self, given: Json, *, throttled: bool) -> FakeResponse:
        if given.get("status") == "read":
            self.read_marks.append(given)
            return FakeResponse({"success": True})
        user: str = given["to"]
        if throttled:
            self.throttle_user(user, self.faults.draw_wait())
        if (left := self._throttled.get(user, 0.0) - time.monotonic()) > 0:
            told = FakeWhatsAppError(400, 131056, "Too many messages to this number").to_json()
            wait = {"Retry-After": str(self._throttle_seconds(user, left))}
            return FakeResponse(told, 400, wait)
        return FakeResponse(self._add_message(user, given))

    def _add_message(self, user: str, given: Json) -> Json:
        text, file = read_text(given), self._read_file(given)
        if user in self._blocked:
            raise FakeWhatsAppError(400, 131026, "Message undeliverable")
        is_template = given["type"] == "template"
        if is_template and given["template"]["name"] not in self._templates:
            raise FakeWhatsAppError(404, 132001, "Template name does not exist in the translation")
        n = self._next_number()
        message = WhatsAppMessage(id=f"wamid.out.{n}", to=user, text=text, payload=given, file=file)
        is_late = user in self._closed and not is_template
        if is_late and self._closed[user]:
            raise FakeWhatsAppError(400, 131047, "Re-engagement message")
        if is_late:
            self._tell_status(
                message, "failed", [{"code": 131047, "title": "Re-engagement message"}]
            )
        else:
            self._sent.append(message)
            self._write_log(n=n, id=message.id, to=user, text=text)
            self._tell_status(message, "sent")
            self._tell_status(message, "delivered")
        return {
            "messaging_product": "whatsapp",
            "contacts": [{"input": user, "wa_id": user}],
            "messages": [{"id": message.id}],
        }

    def _read_file(self, given: Json) -> SentBytes | None:
        shown: Json = given.get(given["type"]) or {}
        media: str | None = shown.get("id")
        if media is None:
            return None
        if media not in self._media:
            raise FakeWhatsAppError(400, 131009, "No such media")
        name, _, content = self._media[media]
        return SentBytes(given[given["type"]].get("filename") or name, content)

    def _tell_status(
        self, message: WhatsAppMessage, state: str, errors: Sequence[Json] = ()
    ) -> None:
        status: Json = {
            "id": message.id,
            "status": state,
            "timestamp": str(int(time.time())),
            "recipient_id": message.to,
        }
        if "biz_opaque_callback_data" in message.payload:
            status["biz_opaque_callback_data"] = message.payload["biz_opaque_callback_data"]
        if errors:
            status["errors"] = list(errors)
        if self.holds_statuses:
            self._held.append({"statuses": [status]})
        else:
            self.post_change({"statuses": [status]})
