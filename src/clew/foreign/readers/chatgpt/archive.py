"""The files of an export: in a zip, or in a folder."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Protocol

from clew.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO, TextIO

_CONVERSATIONS: Final = re.compile(r"conversations(?:[-_]\d+)?\.json")
#: Bytes of a file of a message; larger ones are left out.
_LARGEST: Final = 100_000_000


class Archive:
    """Files by their names, inside one folder of a zip or of the disk."""

    def __init__(self, source: _Source) -> None:
        self._source = source
        self.conversations: Sequence[str] = sorted(
            name for name in source.names if _CONVERSATIONS.fullmatch(PurePosixPath(name).name)
        )

    def open_text(self, name: str) -> TextIO:
        """Open a file as text; bytes that are not UTF-8 are replaced."""
        return io.TextIOWrapper(self._source.open(name), encoding="utf-8-sig", errors="replace")

    def read_asset(self, asset: str) -> tuple[str, bytes | None]:
        """Return the name and the content of a file of a message by its id."""
        name = next((one for one in self._source.names if _is_asset(one, asset)), None)
        if name is None:
            return asset, None
        with self._source.open(name) as file:
            content = file.read(_LARGEST + 1)
        short = PurePosixPath(name).name
        return short.removeprefix(f"{asset}-"), content if len(content) <= _LARGEST else None


def _is_asset(name: str, asset: str) -> bool:
    short = PurePosixPath(name).name
    return short.startswith(asset) and short[len(asset) : len(asset) + 1] in ("", "-", ".", "_")


class _Source(Protocol):
    names: Sequence[str]

    def open(self, name: str) -> BinaryIO: ...


class _Folder:
    def __init__(self, folder: Path, names: Sequence[str] | None = None) -> None:
        self._folder = folder
        self.names: Sequence[str] = names or [
            file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()
        ]

    def open(self, name: str) -> BinaryIO:
        return (self._folder / name).open("rb")


class _Zip:
    def __init__(self, path: Path) -> None:
        self._zip = zipfile.ZipFile(path)
        self.names: Sequence[str] = self._zip.namelist()

    def open(self, name: str) -> BinaryIO:
        return io.BufferedReader(self._zip.open(name))  # pyright: ignore[reportArgumentType]

    def __del__(self) -> None:
        if hasattr(self, "_zip"):
            self._zip.close()


def open_archive(path: Path) -> Archive:
    """
    Open the zip, the folder, or one file of an export.

    :raises UsageError: if there is nothing, or the zip is damaged
    """
    if path.is_dir():
        return Archive(_Folder(path))
    if not path.is_file():
        raise UsageError(f"there is no {path}: name the zip or the folder of the data export")
    if path.suffix == ".json":
        files = _Folder(path.parent).names
        others = [name for name in files if not _CONVERSATIONS.fullmatch(Path(name).name)]
        archive = Archive(_Folder(path.parent, [path.name, *others]))
        archive.conversations = [path.name]
        return archive
    try:
        return Archive(_Zip(path))
    except (zipfile.BadZipFile, OSError) as error:
        raise UsageError(f"{path} cannot be read as a zip ({error}): download it again") from error
