"""Calls to the REST API, and the mapping of failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from clew.core.payload import as_list, as_object, as_objects, as_text
from clew.errors import (
    AccountRefused,
    ChannelError,
    NotDelivered,
    NotSent,
    OutcomeUnknown,
    Throttled,
)
from clew.gateway.http import UPLOAD_TIMEOUT, parse_retry_after

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clew.gateway.http import PlatformHttp

#: Seconds to wait where a refusal names no time.
_DEFAULT_RETRY_AFTER = 5.0
#: Refusals that a second attempt may not meet.
_PENDING = "api.post.deduplicate_create_post.pending"

Json = dict[str, Any]


class MattermostApi:
    """The REST API of one server, as one bot."""

    def __init__(self, http: PlatformHttp, *, token: str, base_url: str) -> None:
        self._http, self._base_url = http, f"{base_url.rstrip('/')}/api/v4"
        self._headers = {"Authorization": f"Bearer {token}"}

    @property
    def socket_url(self) -> str:
        return f"ws{self._base_url.removeprefix('http')}/websocket"

    async def call_api(self, method: str, path: str, body: object = None, **given: Any) -> Any:
        """Make one call; neither waits nor retries: both are up to the rate limiter."""
        if body is not None:
            given["json"] = body
        answer = await self._http.request(
            method, f"{self._base_url}{path}", headers=self._headers, **given
        )
        try:
            told: Any = answer.json() if answer.content else {}
        except ValueError:
            told = None
        if answer.status_code >= 300:
            raise to_channel_error(answer.status_code, as_object(told), answer.headers)
        if told is None:
            raise OutcomeUnknown(f"Mattermost answered {answer.status_code} without JSON")
        return told

    async def list_posts(self, path: str) -> Sequence[Json]:
        """Return the posts of a list, the oldest first."""
        found = as_object(await self.call_api("GET", path))
        posts = as_object(found.get("posts"))
        listed = [as_object(posts.get(as_text(one))) for one in as_list(found.get("order"))]
        return sorted(filter(None, listed), key=lambda one: int(one.get("create_at") or 0))

    async def upload_file(self, channel: str, name: str, content: bytes) -> str:
        """Store a file that nobody sees yet, and return its id."""
        path = f"/files?channel_id={quote(channel)}&filename={quote(name)}"
        try:
            told = await self.call_api("POST", path, content=content, seconds=UPLOAD_TIMEOUT)
        except OutcomeUnknown as error:
            raise NotSent(str(error)) from None
        (info,) = as_objects(as_object(told).get("file_infos"))
        return as_text(info["id"])

    async def download_file(self, file: str, *, most: int) -> bytes:
        url = f"{self._base_url}/files/{quote(file)}"
        return await self._http.download(url, most=most, headers=self._headers)


def to_channel_error(status: int, told: Json, headers: Mapping[str, str]) -> ChannelError:
    """Return the error that an unsuccessful response stands for."""
    name, says = as_text(told.get("id")), as_text(told.get("message")) or str(status)
    if status == 429:
        return Throttled(
            parse_retry_after(
                headers.get("Retry-After") or headers.get("X-RateLimit-Reset") or "",
                otherwise=_DEFAULT_RETRY_AFTER,
            ),
            account=True,
        )
    if status == 401:
        return AccountRefused(
            f"Mattermost does not accept the token ({says}): create one on the page of the bot"
        )
    if status >= 500 or status < 400 or name == _PENDING:
        return OutcomeUnknown(f"Mattermost answered {status}")
    return NotDelivered(f"Mattermost refused the request: {says}", gone=status == 404)
