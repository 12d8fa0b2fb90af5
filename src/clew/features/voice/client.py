"""Requests to the services that hear and speak, as OpenAI's: every failure is one sentence."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

import httpx2

from clew.agent.known_secrets import redact_secrets
from clew.core.payload import as_object, as_text
from clew.core.text import sanitize_text, truncate_text
from clew.distribution import VERSION

if TYPE_CHECKING:
    from clew.features.voice.settings import VoiceService

#: Bytes of an answer that are read.
_MAX_BYTES: Final = 20_000_000
#: Seconds before a busy service is asked again, unless it says how many, and their maximum.
_PAUSE, _MAX_PAUSE = 1.0, 10.0
#: Longest time-out: the message waits a little longer.
_MAX_SECONDS: Final = 90.0
_AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504, 529})


class VoiceFailed(Exception):
    """A service gave no result; the text says why, as a clause."""

    def __init__(self, why: str, *, silent: bool = False) -> None:
        super().__init__(redact_secrets(why))
        #: It did not answer at all.
        self.silent = silent


async def post(service: VoiceService, path: str, **given: Any) -> bytes:
    """
    Return the body with which a service answers a request; a busy one is asked twice.

    :raises VoiceFailed: if it does not answer, or refuses
    """
    seconds = min(service.timeout.total_seconds(), _MAX_SECONDS)
    try:
        # Making the client takes long on a busy machine: that is no time of the service.
        async with httpx2.AsyncClient(timeout=seconds) as client, asyncio.timeout(seconds):
            answer, body = await _send(client, service, path, given)
            if answer.status_code in _AGAIN:
                await asyncio.sleep(_get_pause(answer))
                answer, body = await _send(client, service, path, given)
    except (TimeoutError, httpx2.TimeoutException):
        raise VoiceFailed(f"the service did not answer in {seconds:g} s", silent=True) from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise VoiceFailed(f"the service cannot be reached ({type(error).__name__})") from None
    if answer.status_code != 200:
        raise VoiceFailed(_explain(answer.status_code, body))
    return body


async def _send(
    client: httpx2.AsyncClient, service: VoiceService, path: str, given: dict[str, Any]
) -> tuple[httpx2.Response, bytes]:
    headers = {"User-Agent": f"Clew/{VERSION}"}
    if service.api_key is not None:
        headers["Authorization"] = f"Bearer {service.api_key.reveal()}"
    url = f"{service.base_url.rstrip('/')}/{path}"
    body = bytearray()
    async with client.stream("POST", url, headers=headers, **given) as answer:
        async for piece in answer.aiter_bytes():
            body += piece
            if len(body) > _MAX_BYTES:
                raise VoiceFailed(f"the service answered more than {_MAX_BYTES:,} bytes")
    return answer, bytes(body)


def _get_pause(answer: httpx2.Response) -> float:
    wait = answer.headers.get("Retry-After", "")
    return min(float(wait), _MAX_PAUSE) if wait.isascii() and wait.isdigit() else _PAUSE


def _explain(status: int, body: bytes) -> str:
    if status in (401, 403):
        return f"the service refused the key ({status})"
    if status == 429:
        return "the limit of the service is reached (429)"
    problem = as_object(load_object(body).get("error"))
    message = " ".join(sanitize_text(as_text(problem.get("message"))).split())
    what = f": {truncate_text(message, 200)}" if message else ""
    return f"the service {'failed' if status >= 500 else 'refused it'} ({status}){what}"


def load_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object of an answer; an empty one if it is none."""
    try:
        return as_object(json.loads(body))
    except (ValueError, RecursionError):
        return {}
