"""Secrets of this process, redacted in text for models, people and logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.redaction import MIN_LENGTH, Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable

_known_secrets: set[str] = set()
_redactor = [Redactor(())]


def register_secrets(secrets: Iterable[object]) -> None:
    """Redact these from now on in every text; ignore very short ones and non-strings."""
    new = {one for one in secrets if isinstance(one, str) and len(one) >= MIN_LENGTH}
    new -= _known_secrets
    if new:
        _known_secrets.update(new)
        _redactor[0] = Redactor(_known_secrets)


def redact_secrets(text: str) -> str:
    """Return the text without any registered secret."""
    return _redactor[0].redact_text(text)


def redact_part(before: str, part: str, after: str) -> str:
    """Return a part of a text without any registered secret, and without pieces of one."""
    return _redactor[0].redact_part(before, part, after)
