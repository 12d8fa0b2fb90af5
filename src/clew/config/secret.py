"""Secrets: values that are resolved when used and never shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from clew.core.text import REDACTED
from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

#: The names of a secret's table form: ``{ env = "NAME" }`` or ``{ file = "path" }``.
REFERENCE_FORMS: Final = ("env", "file")

_SECRET_NAME = r"(?i)(?:^|_|-)(?:token|secret|password|passphrase|key)s?$"
_PASSWORD_IN_URL = r"(?<=://)([^/@:\s]*):[^/\s]*(?=@)"


class Secret:
    """
    A secret, or a reference to it.

    Neither ``repr`` nor ``str`` show it, and it cannot be pickled; ``reveal()`` reads it at
    each use, so a rotated file takes effect.
    """

    __slots__ = ("_read", "literal", "source")

    def __init__(self, read: Callable[[], str], *, source: str, literal: bool = False) -> None:
        self._read = read
        #: Its source, for people: ``environment variable OPENAI_API_KEY``.
        self.source: Final = source
        #: True if the settings contain the value itself, not a reference.
        self.literal: Final = literal

    @classmethod
    def from_text(cls, value: str) -> Secret:
        """Return the secret that is this text."""
        return cls(lambda: value, source="given as text", literal=True)

    @classmethod
    def from_env(
        cls, name: str, *, key: str, environ: Mapping[str, str], advise: str | None = None
    ) -> Secret:
        """
        Return the secret in an environment variable; ``key`` is the setting that names it.

        ``advise`` says what else than setting the variable can be done.
        """
        other = advise or f'write {key} = {{ file = "PATH" }}'

        def read_variable() -> str:
            if value := environ.get(name):
                return value
            raise SettingsError(
                f"{key} is read from the environment variable {name}, which is not set: set it, "
                f"or {other}"
            )

        return cls(read_variable, source=f"environment variable {name}")

    @classmethod
    def from_file(cls, path: Path, *, key: str) -> Secret:
        """Return the secret in a file, without the line ends that follow it."""

        def read_secret_file() -> str:
            try:
                value = path.read_text(encoding="utf-8-sig").rstrip("\r\n")
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is not text"
                raise SettingsError(
                    f"{key} is read from the file {path}, which cannot be read: {reason}"
                ) from None
            if not value:
                raise SettingsError(f"{key} is read from the file {path}, which is empty")
            return value

        return cls(read_secret_file, source=f"file {path}")

    def reveal(self) -> str:
        """
        Return the secret itself.

        :raises SettingsError: if the variable is not set, or the file cannot be read or is
            empty
        """
        return self._read()

    def __repr__(self) -> str:
        return f"Secret({REDACTED if self.literal else self.source})"

    def __reduce__(self) -> str:
        raise TypeError("a secret cannot be pickled or copied")

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self


def is_secret_name(name: str) -> bool:
    """Return whether a key of an open table holds a secret (``app_token``, ``password``)."""
    return bool(re.search(_SECRET_NAME, name))


def redact_password(url: str) -> str:
    """Return the URL without its password."""
    return re.sub(_PASSWORD_IN_URL, rf"\1:{REDACTED}", url)
