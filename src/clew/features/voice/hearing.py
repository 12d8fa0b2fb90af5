"""Transcripts of recordings, made once in a conversation, with what they cost."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, Any, Final

from clew.core.file_reading import FileReading
from clew.core.payload import as_object
from clew.core.side_answer import SideAnswer
from clew.features.voice.client import VoiceFailed, load_object, post
from clew.features.voice.recordings import MAX_BYTES, find_format, measure_millis
from clew.record import Record

if TYPE_CHECKING:
    from clew.features.voice.settings import VoiceService
    from clew.plugin import FeatureContext
    from clew.plugin.declarations import FileToRead
    from clew.store.contract import Tx

_MODEL: Final = "gpt-4o-mini-transcribe"
#: Requests in a row without an answer, after which a service is not asked for so many seconds:
#: each message would wait as long.
_MAX_SILENT, _PAUSE = 3, 30.0


class HeardText(Record):
    """The text of a recording."""

    text: str
    model: str
    millis: int | None
    input_tokens: int = 0
    output_tokens: int = 0


class Hearing:
    """The reader of recordings of one process."""

    def __init__(self, service: VoiceService) -> None:
        self._service = service
        self._silent, self._silent_until = 0, 0.0

    async def read(self, context: FeatureContext, file: FileToRead) -> FileReading:
        """Return the transcript of a recording, or why there is none."""
        digest = hashlib.sha256(file.content).hexdigest()
        known = await context.store.read(find_transcript, file.conversation, digest)
        if known is not None:
            return FileReading(text=known)
        try:
            found = await self._transcribe(file)
        except VoiceFailed as failed:
            self._silent = self._silent + 1 if failed.silent else 0
            if self._silent >= _MAX_SILENT:
                self._silent, self._silent_until = 0, time.monotonic() + _PAUSE
            return FileReading(unread=str(failed))
        self._silent = 0
        await context.store.write(keep_transcript, file.conversation, digest, found)
        return FileReading(text=found.text, usage=_count(found, self._service.price))

    async def _transcribe(self, file: FileToRead) -> HeardText:
        format, millis = find_format(file.content), measure_millis(file.content)
        if format is None:
            raise VoiceFailed(
                f"{file.media_type} is no format that it can be made of: send ogg, m4a, mp3, "
                "wav, webm or flac"
            )
        if len(file.content) > MAX_BYTES:
            raise VoiceFailed(f"a recording may have {MAX_BYTES:,} bytes at most")
        longest = self._service.longest
        if millis is not None and millis > longest.total_seconds() * 1000:
            raise VoiceFailed(
                f"it is {millis // 1000} s long, and voice.stt.longest is "
                f"{longest.total_seconds():g} s"
            )
        if time.monotonic() < self._silent_until:
            raise VoiceFailed("the service did not answer a moment ago")
        fields = {"model": self._service.model or _MODEL, "response_format": "json"}
        if self._service.language is not None:
            fields["language"] = self._service.language
        upload = (f"recording.{format}", file.content, file.media_type)
        body = await post(
            self._service, "audio/transcriptions", data=fields, files={"file": upload}
        )
        return _parse(load_object(body), model=fields["model"], millis=millis)


def _parse(told: dict[str, Any], *, model: str, millis: int | None) -> HeardText:
    text = told.get("text")
    if not isinstance(text, str):
        raise VoiceFailed("the service answered without a text")
    if not text.strip():
        raise VoiceFailed("the service heard no words in it")
    usage = as_object(told.get("usage"))
    seconds = usage.get("seconds", told.get("duration"))
    if isinstance(seconds, (int, float)) and 0 < seconds < 1e6:
        millis = round(seconds * 1000)
    return HeardText(
        text=text.strip(),
        model=model,
        millis=millis,
        input_tokens=_as_count(usage.get("input_tokens")),
        output_tokens=_as_count(usage.get("output_tokens")),
    )


def _as_count(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 1_000_000_000 else 0


def _count(found: HeardText, price: int) -> SideAnswer:
    return SideAnswer(
        text=found.text,
        is_complete=True,
        model=found.model,
        input_tokens=found.input_tokens,
        output_tokens=found.output_tokens,
        cost_micros=price_audio(found.millis, price),
    )


def price_audio(millis: int | None, price: int) -> int | None:
    """Return the cost of a recording in millionths of a dollar; ``None`` if it is not known."""
    return None if millis is None or not price else round(millis * price / 60_000)


def find_transcript(t: Tx, conversation: str, digest: str) -> str | None:
    """Return the transcript of a recording that was made in this conversation."""
    return t.fetch_value(
        "SELECT text FROM voice_transcript WHERE conversation = $1 AND sha256 = $2",
        conversation,
        digest,
    )


def keep_transcript(t: Tx, conversation: str, digest: str, found: HeardText) -> None:
    """Store the transcript of a recording; the first one stays."""
    t.execute(
        """
        INSERT INTO voice_transcript (conversation, sha256, text, model, millis, at)
        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (conversation, sha256) DO NOTHING
        """,
        conversation,
        digest,
        found.text,
        found.model,
        found.millis,
        t.now,
    )
