"""Texts that OpenClaw has compressed with Zstandard, which our Python cannot read by itself."""

from __future__ import annotations

from typing import Final

from clew.distribution import format_install_command

#: As much as OpenClaw allows for one text, many times over.
_MOST: Final = 1 << 30


class UnreadableZstdError(LookupError):
    """The package that decompresses is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "its records are compressed with Zstandard, which needs a package: "
            f"{format_install_command('zstd')}, then import again"
        )


def decompress(packed: bytes) -> str:
    """
    Return a text that was compressed.

    :raises UnreadableZstdError: if the package for it is not installed
    :raises ValueError: if it is damaged
    """
    try:
        import zstandard  # noqa: PLC0415  (an extra)
    except ImportError:
        raise UnreadableZstdError from None
    try:
        unpacked = zstandard.ZstdDecompressor().decompress(packed, max_output_size=_MOST)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
    return unpacked.decode("utf-8", "replace")
