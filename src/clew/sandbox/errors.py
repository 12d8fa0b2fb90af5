"""Errors of the sandbox; each text is a sentence for the model and for a person."""

from __future__ import annotations

from typing import Final

from clew.errors import ClewError

#: Characters of a path in a sentence.
_LONGEST_PATH: Final = 250


class SandboxError(ClewError):
    """Command that cannot be started as asked for."""


class SandboxUnavailable(SandboxError):
    """Level that nothing on this machine provides; the text says what to install."""


class FileRefused(ClewError):
    """File of a workspace that cannot be used; nothing was changed."""


def quote_path(path: str) -> str:
    """Return a path for a sentence; of a long one, the beginning and the end."""
    shown = repr(path)
    return shown if len(shown) <= _LONGEST_PATH else f"{shown[:100]}…{shown[-100:]}"


class OutsideWorkspace(FileRefused):
    """Path that leads out of the workspace, by name or by a symbolic link."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{quote_path(path)} is outside of the workspace")
        self.path = path


class PathLeadsElsewhere(FileRefused):
    """Path outside of the workspace that goes over a symbolic link."""

    def __init__(self, path: str, target: str) -> None:
        super().__init__(
            f"{quote_path(path)} goes over a symbolic link: name {quote_path(target)} instead"
        )


class FileMissing(FileRefused):
    """Path at which there is nothing."""

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no {quote_path(path)} in the workspace")
        self.path = path


class WorkspaceFull(FileRefused):
    """Write that would make a workspace too large."""


class FileTooLarge(FileRefused):
    """File of more bytes than may be read or written at once."""

    def __init__(self, path: str, *, size: int, limit: int) -> None:
        super().__init__(
            f"{quote_path(path)} has {size:,} bytes; at most {limit:,} can be used at once"
        )
        self.path, self.size, self.limit = path, size, limit
