"""What only shows when settings are used: missing secrets and files, an API without a token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.config.describe import secrets
from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.config.settings import Settings


def problems(settings: Settings) -> list[str]:
    """A sentence for each thing that would fail later."""
    attempts: list[Callable[[], object]] = [
        settings.api.require_token_beyond_loopback,
        settings.agent.read_instructions,
        *(secret.reveal for secret in secrets(settings)),
    ]
    return [problem for attempt in attempts for problem in _tried(attempt)]


def _tried(attempt: Callable[[], object]) -> tuple[str, ...]:
    try:
        attempt()
    except SettingsError as error:
        return error.problems
    return ()
