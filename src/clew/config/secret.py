"""Secrets: values that are resolved at use and never shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from clew.core.text import REDACTED
from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

#: The names of a secret's table form: ``{ env = "NAME" }`` or ``{ file = "path" }``.
FORMS: Final = ("env", "file")

_NAMED_LIKE_ONE = r"(?i)(?:^|_|-)(?:token|secret|password|passphrase|key)s?$"
_PASSWORD_IN_URL = r"(?<=://)([^/@:\s]*):[^/\s]*(?=@)"


class Secret:
    """
    A secret, or where it is kept.

    Neither ``repr`` nor ``str`` show it, and it cannot be pickled; ``reveal()`` reads it anew
    at each use, so a rotated file is seen.
    """

    __slots__ = ("_read", "literal", "source")

    def __init__(self, read: Callable[[], str], *, source: str, literal: bool = False) -> None:
        self._read = read
        #: Where it comes from, for people: ``environment variable OPENAI_API_KEY``.
        self.source: Final = source
        #: Whether the value itself was written down, instead of where to find it.
        self.literal: Final = literal

    @classmethod
    def of(cls, value: str) -> Secret:
        """The secret that is this text."""
        return cls(lambda: value, source="given as text", literal=True)

    @classmethod
    def from_env(cls, name: str, *, key: str, environ: Mapping[str, str]) -> Secret:
        """The secret in an environment variable; ``key`` is the setting that names it."""

        def read() -> str:
            if value := environ.get(name):
                return value
            raise SettingsError(
                f"{key} is to come from the environment variable {name}, which is not set: set it, "
                f'or write {key} = {{ file = "PATH" }}'
            )

        return cls(read, source=f"environment variable {name}")

    @classmethod
    def from_file(cls, path: Path, *, key: str) -> Secret:
        """The secret in a file, without the line ends that follow it."""

        def read() -> str:
            try:
                value = path.read_text(encoding="utf-8-sig").rstrip("\r\n")
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is not text"
                raise SettingsError(
                    f"{key} is to come from the file {path}, which cannot be read: {reason}"
                ) from None
            if not value:
                raise SettingsError(f"{key} is to come from the file {path}, which is empty")
            return value

        return cls(read, source=f"file {path}")

    def reveal(self) -> str:
        """
        The secret itself.

        :raises SettingsError: if the variable is not set, or the file cannot be read or is empty
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


def named_like_a_secret(name: str) -> bool:
    """Whether text under this name in an open table is a secret (``app_token``, ``password``)."""
    return bool(re.search(_NAMED_LIKE_ONE, name))


def without_password(url: str) -> str:
    """The URL as it may be shown."""
    return re.sub(_PASSWORD_IN_URL, rf"\1:{REDACTED}", url)
