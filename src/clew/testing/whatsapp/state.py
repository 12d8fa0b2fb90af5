"""State of a fake WhatsApp: the agent's messages, files, and the limits of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.record import Record

if TYPE_CHECKING:
    from clew.testing.multipart import SentBytes

Json = dict[str, Any]

MAX_TEXT, MAX_BUTTON_BODY, MAX_CAPTION = 4096, 1024, 1024
#: Media types that an upload may have.
UPLOAD_TYPES = frozenset({
    "audio/aac", "audio/amr", "audio/mp4", "audio/mpeg", "audio/ogg", "image/jpeg", "image/png",
    "image/webp", "text/plain", "application/pdf", "application/msword", "application/vnd.ms-excel",
    "application/vnd.ms-powerpoint", "video/3gpp", "video/mp4",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
})  # fmt: skip


class FakeWhatsAppError(Exception):
    """An error response of the API."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message

    def to_json(self) -> Json:
        return {
            "error": {
                "message": f"(#{self.code}) {self.message}",
                "type": "OAuthException",
                "code": self.code,
                "error_data": {"messaging_product": "whatsapp", "details": self.message},
                "fbtrace_id": "fake",
            }
        }


class WhatsAppMessage(Record):
    """A message of the agent."""

    id: str
    to: str
    text: str
    payload: Json
    file: SentBytes | None = None

    @property
    def kind(self) -> str:
        return str(self.payload["type"])


def read_text(payload: Json) -> str:
    """
    Return the text of a message, as the person sees it.

    :raises FakeWhatsAppError: if the API would refuse it
    """
    kind = payload.get("type", "")
    given: Json = payload.get(kind) or {}
    if kind == "text":
        return _limited(given.get("body", ""), MAX_TEXT, empty=False)
    if kind == "interactive":
        return _read_interactive(given)
    if kind == "template":
        return f"template {given['name']} ({given['language']['code']})"
    if kind in ("image", "video", "audio", "document"):
        if kind == "audio" and "caption" in given:
            raise FakeWhatsAppError(400, 100, "Unexpected key caption on param audio")
        return _limited(given.get("caption", ""), MAX_CAPTION)
    raise FakeWhatsAppError(400, 100, f"Invalid parameter: type {kind!r}")


def _limited(text: str, most: int, *, empty: bool = True) -> str:
    if len(text) > most or (not empty and not text.strip()):
        raise FakeWhatsAppError(400, 100, f"Param text must be 1 to {most} characters long")
    return text


def _read_interactive(given: Json) -> str:
    text: str = given["body"]["text"]
    if given["type"] == "button":
        titles = [one["reply"]["title"] for one in given["action"]["buttons"]]
        most, longest, limit = 3, 20, MAX_BUTTON_BODY
    else:
        titles = [row["title"] for one in given["action"]["sections"] for row in one["rows"]]
        most, longest, limit = 10, 24, MAX_TEXT
        _limited(given["action"]["button"], 20, empty=False)
    if not 1 <= len(titles) <= most or len(set(titles)) < len(titles):
        raise FakeWhatsAppError(400, 131009, "Invalid number of buttons, or equal ones")
    for title in titles:
        _limited(title, longest, empty=False)
    return _limited(text, limit, empty=False)
