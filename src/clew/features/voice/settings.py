"""The settings of voice: the services that hear and speak."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from clew.config.builtin_types import DURATION, SECRET, TEXT, URL, choice_type, integer_type
from clew.config.fields import setting
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.config.secret import Secret
    from clew.config.settings import Settings

#: The tables that ``[voice.NAME]`` may have.
STT: Final = "stt"
TTS: Final = "tts"

#: What is done where a person or chat has chosen nothing.
MODES: Final = ("auto", "on", "off")


class VoiceService(Record):
    """`stt` makes text of recordings, `tts` speech of answers, by a server as OpenAI's."""

    base_url: str = setting(
        URL,
        "https://api.openai.com/v1",
        "Where the service is: any server with OpenAI's `/audio/transcriptions` (`stt`) or "
        "`/audio/speech` (`tts`) below it.",
        shown=False,
    )
    api_key: Secret | None = setting(SECRET, None, "The key of the service, if it needs one.")
    model: str | None = setting(
        TEXT,
        None,
        "The model of the service.",
        default_doc="`gpt-4o-mini-transcribe` for `stt`, `gpt-4o-mini-tts` for `tts`",
    )
    timeout: timedelta = setting(
        DURATION, timedelta(seconds=45), "How long one request may take, at most 90 seconds."
    )
    language: str | None = setting(
        TEXT,
        None,
        "`stt`: the language of the recordings, as `en`.",
        default_doc="what the service hears",
    )
    longest: timedelta = setting(
        DURATION,
        timedelta(minutes=30),
        "`stt`: longer recordings are not sent to the service, where their length is known.",
    )
    voice: str = setting(TEXT, "alloy", "`tts`: the voice.")
    mode: str = setting(
        choice_type(MODES),
        "auto",
        "`tts`: which answers are spoken where nothing else is chosen with `/voice`: `auto` those "
        "to spoken messages, `on` all, `off` none.",
    )
    price: int = setting(
        integer_type(least=0),
        0,
        "Millionths of a US dollar for a minute of audio, for `clew usage`; 0 where it is not "
        "known.",
    )


def find_problems(settings: Settings) -> Iterator[str]:
    """Yield a sentence for each table that is no service."""
    for name in settings.tables.get("voice", {}):
        if name not in (STT, TTS):
            yield f"[voice.{name}]: there are [voice.{STT}] and [voice.{TTS}]"
