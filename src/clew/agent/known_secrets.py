"""The secrets of this process: taken out of what models, people and logs are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.redaction import MIN_ENCODED_LENGTH, Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable

_known: set[str] = set()
_redactor = [Redactor(())]


def register_secrets(secrets: Iterable[object]) -> None:
    """Take these out of every text from now on; what is no text, or very short, is passed over."""
    new = {
        one for one in secrets if isinstance(one, str) and len(one) >= MIN_ENCODED_LENGTH
    } - _known
    if new:
        _known.update(new)
        _redactor[0] = Redactor(_known)


def redact(text: str) -> str:
    """Return the text without any secret that was registered."""
    return _redactor[0].redact_text(text)
