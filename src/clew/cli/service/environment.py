"""Variables of this environment that a service will not have."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from clew.config.fields import ENV_PREFIX
from clew.config.introspection import iter_secrets
from clew.config.load import HOME_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from clew.config import Settings

#: Not needed by a service: its home is in its command.
_OF_COMMANDS: Final = frozenset({HOME_VARIABLE, f"{ENV_PREFIX}DEBUG"})
_SOURCE: Final = "environment variable "


def find_missing_variables(settings: Settings, file: Path) -> Sequence[str]:
    """Return the variables that the settings read here and ``file`` does not set."""
    given = _read_names(file)
    used = {name for name in _iter_used_variables(settings) if os.environ.get(name)}
    return sorted(used - given - _OF_COMMANDS)


def _iter_used_variables(settings: Settings) -> Iterator[str]:
    yield from (name for name in os.environ if name.startswith(ENV_PREFIX))
    for _name, secret in iter_secrets(settings):
        if secret.source.startswith(_SOURCE):
            yield secret.source.removeprefix(_SOURCE)
    yield from (name.partition("@")[0] for name, _ in settings.sandbox.secrets)


def _read_names(file: Path) -> set[str]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return set()
    return {line.partition("=")[0].strip() for line in lines if "=" in line}
