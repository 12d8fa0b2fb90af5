"""Recordings: their formats by the first bytes, and how long they are; pure."""

from __future__ import annotations

from typing import Final

#: Largest recording that is sent to a service; OpenAI takes no larger one.
MAX_BYTES: Final = 25_000_000
#: Samples a second by which Ogg counts for Opus, whatever was recorded.
_OPUS_RATE: Final = 48_000

_SIGNATURES: Final = (
    (0, b"OggS", "ogg"),
    (0, b"fLaC", "flac"),
    (0, b"ID3", "mp3"),
    (4, b"ftyp", "m4a"),
    (0, b"\x1a\x45\xdf\xa3", "webm"),
)


def find_format(content: bytes) -> str | None:
    """Return the file extension of a format that services take; ``None`` for another one."""
    if content[:4] == b"RIFF" and content[8:12] == b"WAVE":
        return "wav"
    if len(content) > 1 and content[0] == 0xFF and content[1] & 0xE6 == 0xE2:
        return "mp3"
    return next((name for at, sign, name in _SIGNATURES if content[at:].startswith(sign)), None)


def is_recording(media_type: str, content: bytes) -> bool:
    """Return whether a file is a recording; pictures, texts and films are none."""
    kind = media_type.lower().partition(";")[0].strip()
    if kind.startswith("audio/") or kind == "application/ogg":
        return True
    return kind == "application/octet-stream" and find_format(content) in ("ogg", "mp3", "wav")


def measure_millis(content: bytes) -> int | None:
    """Return how long an Ogg Opus recording is; ``None`` for other formats, which do not say."""
    last = content.rfind(b"OggS")
    if last < 0 or b"OpusHead" not in content[:512] or len(content) < last + 14:
        return None
    samples = int.from_bytes(content[last + 6 : last + 14], "little", signed=True)
    return samples * 1000 // _OPUS_RATE if samples > 0 else None
