"""Problems that only show in use: missing secrets and files, an API without a token."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from clew.config.introspection import iter_secrets
from clew.config.workspaces import check_sandbox
from clew.core.redaction import MIN_LENGTH
from clew.core.secret_text import find_unsendable
from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clew.config.secret import Secret
    from clew.config.settings import Settings


def find_problems(settings: Settings) -> list[str]:
    """Return a sentence for each thing that would fail later."""
    attempts: list[Callable[[], object]] = [
        settings.api.require_token_beyond_loopback,
        settings.agent.read_instructions,
        partial(check_sandbox, settings),
        *(secret.reveal for _, secret in iter_secrets(settings)),
        *(partial(_check_sendable, *each) for each in _iter_header_secrets(settings)),
    ]
    return [problem for attempt in attempts for problem in _collect_problems(attempt)]


def find_unmasked_secrets(settings: Settings) -> list[str]:
    """Return a sentence for each secret that is too short to be masked in text."""
    found: list[str] = []
    for name, secret in iter_secrets(settings):
        with suppress(SettingsError):  # a problem, which is reported
            if len(secret.reveal()) < MIN_LENGTH:
                found.append(
                    f"{name} has fewer than {MIN_LENGTH} characters: it is not masked in logs, "
                    "answers and results of tools; use a longer one"
                )
    return found


def _collect_problems(attempt: Callable[[], object]) -> tuple[str, ...]:
    try:
        attempt()
    except SettingsError as error:
        return error.problems
    return ()


def _iter_header_secrets(settings: Settings) -> Iterator[tuple[str, Secret]]:
    """Yield each secret sent in request headers, with its setting."""
    if settings.model.api_key is not None:
        yield "model.api_key", settings.model.api_key
    for name, provider in settings.providers.items():
        if provider.api_key is not None:
            yield f"providers.{name}.api_key", provider.api_key
    for name, channel in settings.channels.items():
        if channel.token is not None:
            yield f"channels.{name}.token", channel.token


def _check_sendable(setting: str, secret: Secret) -> None:
    """
    Check that a header can carry the secret.

    :raises SettingsError: if it cannot
    """
    try:
        text = secret.reveal()
    except SettingsError:
        return  # reported already
    if problem := find_unsendable(text):
        raise SettingsError(f"{setting} cannot be used: {problem}")
