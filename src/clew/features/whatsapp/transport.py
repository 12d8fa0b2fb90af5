"""Calls to the Cloud API: messages, and files in two steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from clew.core.payload import as_object, as_objects, as_text
from clew.errors import NotDelivered, OutcomeUnknown
from clew.features.whatsapp.failures import as_not_sent, to_channel_error
from clew.gateway.http import UPLOAD_TIMEOUT, parse_json_object

if TYPE_CHECKING:
    from clew.features.whatsapp.settings import WhatsAppSettings
    from clew.gateway.http import PlatformHttp

#: Hosts beside the API's own that are sent the token for the content of a file.
_MEDIA_HOSTS = (".facebook.com", ".fbsbx.com", ".whatsapp.net", ".fbcdn.net")

Json = dict[str, Any]


class WhatsAppApi:
    """The Cloud API, as one phone number."""

    def __init__(self, http: PlatformHttp, settings: WhatsAppSettings) -> None:
        self._http, self._settings = http, settings
        self._headers = {"Authorization": f"Bearer {settings.token}"}

    async def call_api(self, method: str, path: str, body: object = None, **given: Any) -> Json:
        """Make one call; neither waits nor retries: both are up to the rate limiter."""
        if body is not None:
            given["json"] = body
        url = f"{self._settings.api_url}/{path}"
        answer = await self._http.request(method, url, headers=self._headers, **given)
        told = parse_json_object(answer)
        if answer.status_code >= 300 or "error" in told:
            raise to_channel_error(answer.status_code, told, answer.headers)
        return told

    async def read_number(self) -> str:
        """Return the digits of the agent's phone number."""
        fields = "?fields=display_phone_number,verified_name"
        told = await self.call_api("GET", f"{self._settings.phone_number_id}{fields}")
        return "".join(filter(str.isdigit, as_text(told.get("display_phone_number"))))

    async def send_message(self, payload: Json) -> str:
        """Send a message and return its id."""
        told = await self.call_api("POST", f"{self._settings.phone_number_id}/messages", payload)
        (sent, *_) = as_objects(told.get("messages")) or [{}]
        if not (message := as_text(sent.get("id"))):
            raise OutcomeUnknown("WhatsApp answered without the id of the message")
        return message

    async def mark_read(self, payload: Json) -> None:
        await self.call_api("POST", f"{self._settings.phone_number_id}/messages", payload)

    async def upload_file(self, name: str, content: bytes, media_type: str) -> str:
        """Store a file that nobody sees yet, and return its id."""
        try:
            told = await self.call_api(
                "POST",
                f"{self._settings.phone_number_id}/media",
                data={"messaging_product": "whatsapp", "type": media_type},
                files={"file": (name, content, media_type)},
                seconds=UPLOAD_TIMEOUT,
            )
        except OutcomeUnknown as error:
            raise as_not_sent(error) from None
        if not (media := as_text(told.get("id"))):
            raise NotDelivered("WhatsApp gave the file no id")
        return media

    async def download_file(self, media: str, *, most: int) -> bytes:
        """Return the content of a file; its address, which lives for minutes, is asked anew."""
        told = as_object(await self.call_api("GET", quote(media)))
        size, url = told.get("file_size"), as_text(told.get("url"))
        if isinstance(size, int) and size > most:
            raise NotDelivered(f"the file has more than {most:,} bytes")
        if not self._may_send_token(url):
            raise NotDelivered("WhatsApp named no address of the file that can be trusted")
        return await self._http.download(url, most=most, headers=self._headers)

    def _may_send_token(self, url: str) -> bool:
        there, api = urlsplit(url), urlsplit(self._settings.api_url)
        if (there.scheme, there.netloc) == (api.scheme, api.netloc):
            return True
        return there.scheme == "https" and f".{there.hostname}".endswith(_MEDIA_HOSTS)
