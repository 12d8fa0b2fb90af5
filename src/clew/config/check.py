"""What only shows when settings are used: missing secrets and files, an API without a token."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from clew.config.describe import secrets
from clew.core.secret_text import find_unsendable
from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clew.config.secret import Secret
    from clew.config.settings import Settings


def problems(settings: Settings) -> list[str]:
    """A sentence for each thing that would fail later."""
    attempts: list[Callable[[], object]] = [
        settings.api.require_token_beyond_loopback,
        settings.agent.read_instructions,
        *(secret.reveal for secret in secrets(settings)),
        *(partial(_refuse_unsendable, *each) for each in _sent(settings)),
    ]
    return [problem for attempt in attempts for problem in _tried(attempt)]


def _tried(attempt: Callable[[], object]) -> tuple[str, ...]:
    try:
        attempt()
    except SettingsError as error:
        return error.problems
    return ()


def _sent(settings: Settings) -> Iterator[tuple[str, Secret]]:
    """Yield what is sent in the head of requests, with the setting that holds it."""
    if settings.model.api_key is not None:
        yield "model.api_key", settings.model.api_key
    for name, provider in settings.providers.items():
        if provider.api_key is not None:
            yield f"providers.{name}.api_key", provider.api_key
    for name, channel in settings.channels.items():
        if channel.token is not None:
            yield f"channels.{name}.token", channel.token


def _refuse_unsendable(setting: str, secret: Secret) -> None:
    """:raises SettingsError: if a header cannot carry the secret"""
    try:
        text = secret.reveal()
    except SettingsError:
        return  # told already
    if problem := find_unsendable(text):
        raise SettingsError(f"{setting} cannot be used: {problem}")
