"""
The folder that the tools of a scope work in, and safe access to the files in it.

Commands in a sandbox may change the folder at any moment, so no check of a path is worth anything
afterwards: every file is opened by descriptor, below the descriptor of the folder.
"""

from __future__ import annotations

import errno
import fcntl
import os
import posixpath
import re
import secrets
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import filterfalse, islice
from typing import TYPE_CHECKING, BinaryIO, Final

from clew.sandbox.beneath import open_beneath, open_folder
from clew.sandbox.errors import (
    FileMissing,
    FileRefused,
    FileTooLarge,
    OutsideWorkspace,
    quote_path,
)
from clew.sandbox.folder_size import measure_folder

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from pathlib import Path

#: Bytes that are read or written at once, unless the caller says otherwise.
FILE_LIMIT: Final = 20_000_000
#: Names in a folder that are listed.
FOLDER_LIMIT: Final = 50_000
#: A file in the making; it is not listed, and removed once whoever made it is gone.
_TEMPORARY: Final = re.compile(r"\.clew-new-[0-9a-f]{16}")
_KINDS: Final = {
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "symbolic link",
    stat.S_IFIFO: "named pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFBLK: "device",
    stat.S_IFCHR: "device",
    stat.S_IFREG: "file",
}
_WAYS_OUT: Final = (errno.EXDEV, errno.ELOOP)


def name_folder(scope: str) -> str:
    """
    Return the name of the folder of a scope.

    Two scopes never share one, also where a file system ignores case.
    """
    plain = re.sub(r"[^a-z0-9._-]+", "-", scope.lower()).strip(".-")[:48]
    if plain and plain == scope:
        return plain
    digest = sha256(scope.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{plain}-{digest[:12]}".lstrip("-")


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderEntry:
    """One name in a folder of the workspace."""

    #: Relative to the workspace; bytes that are no UTF-8 are surrogates.
    path: str
    #: ``file``, ``folder``, ``symbolic link``, ``named pipe``, ``socket`` or ``device``.
    kind: str
    size: int
    #: Seconds since 1970.
    modified: float


class Workspace:
    """
    A folder whose files are read and written without ever leaving it.

    Paths are relative to the folder, or absolute and inside of it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        #: In all of the file system, a link leads to something that nobody was asked about.
        self._links = root != root.parent

    def create(self) -> None:
        """
        Create the folder for its owner alone.

        One that exists is left as it is, but for a command that has shut out everybody.
        """
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        mode = stat.S_IMODE(self.root.stat().st_mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            self.root.chmod(mode | stat.S_IRWXU)

    def relative_path(self, path: str) -> str:
        """
        Return the path relative to the workspace, normalised by its text.

        :raises FileRefused: if it is not a usable path, or not inside
        """
        if "\0" in path or not path:
            raise FileRefused("a path must be text without NUL, and not be empty")
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            raise FileRefused(f"{path!r} is not a usable path") from None
        if path == "~" or path.startswith("~/"):
            path = f"./{path[2:]}"  # HOME of a command is the workspace
        found = posixpath.normpath(posixpath.join(self.root.as_posix(), path))
        relative = posixpath.relpath(found, self.root.as_posix())
        if relative == ".." or relative.startswith("../"):
            raise OutsideWorkspace(path)
        return relative

    @contextmanager
    def open_file(self, path: str) -> Generator[BinaryIO]:
        """
        Open a regular file for reading.

        :raises FileRefused: if there is none, it is something else, or it is outside
        """
        relative = self.relative_path(path)
        with self._open_root() as root, _translate_errors(path):
            # Opening a named pipe would wait for a writer.
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
            descriptor = open_beneath(root, relative, flags, links=self._links)
        try:
            _refuse_special(path, os.fstat(descriptor).st_mode)
        except FileRefused:
            os.close(descriptor)
            raise
        with open(descriptor, "rb") as file:  # noqa: PTH123  (a descriptor, not a path)
            yield file

    def read_file(self, path: str, *, limit: int = FILE_LIMIT) -> bytes:
        """
        Return the content of a regular file.

        :raises FileTooLarge: if it has more than ``limit`` bytes
        """
        with self.open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size <= limit:
                content = file.read(limit + 1)
                size = len(content)  # it may have grown
                if size <= limit:
                    return content
        raise FileTooLarge(path, size=size, limit=limit)

    def write_file(self, path: str, content: bytes, *, limit: int = FILE_LIMIT) -> None:
        """
        Replace a file as a whole, or create it and its folders.

        Readers see the old content or the new one, also after a crash. A link is never written
        through.

        :raises FileRefused: if there is something else than a regular file
        """
        if len(content) > limit:
            raise FileTooLarge(path, size=len(content), limit=limit)
        with self._open_parent(path, create=True) as (folder, name):
            mode = 0o644
            with suppress(FileNotFoundError):
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                _refuse_special(path, found.st_mode)
                mode = stat.S_IMODE(found.st_mode) & 0o777
            _replace_file(folder, name, content, mode)

    def remove_file(self, path: str) -> None:
        """
        Remove a file or a link, not what it points to; nothing happens where there is none.

        :raises FileRefused: if it is a folder, or outside
        """
        with suppress(FileMissing), self._open_parent(path) as (folder, name):
            if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                raise FileRefused(f"{path!r} is a folder, not a file")
            os.unlink(name, dir_fd=folder)

    def describe_file(self, path: str) -> FolderEntry | None:
        """
        Return the kind and size of what is at a path, ``None`` if there is nothing.

        :raises OutsideWorkspace: if it is outside
        """
        relative = self.relative_path(path)
        if relative == ".":
            return _describe_entry(".", self.root.stat())
        with suppress(FileMissing), self._open_parent(path) as (folder, name):
            return _describe_entry(relative, os.stat(name, dir_fd=folder, follow_symlinks=False))
        return None

    def list_folder(self, path: str = ".") -> list[FolderEntry]:
        """
        Return what a folder holds, by name.

        :raises FileRefused: if there is no such folder, or too much in it
        """
        with self._scan_folder(path) as entries:
            found = [*islice(filterfalse(_is_temporary, entries), FOLDER_LIMIT + 1)]
        if len(found) > FOLDER_LIMIT:
            raise FileRefused(f"the folder {path!r} holds more than {FOLDER_LIMIT:,} names")
        return sorted(found, key=lambda entry: entry.path)

    def iter_files(self, path: str = ".") -> Iterator[FolderEntry]:
        """
        Yield every regular file below a folder, folder by folder, in the order of names.

        Links are not followed. A folder that vanished, cannot be opened or holds too much is
        left out.
        """
        for entries in self._walk_folders(path):
            yield from (entry for entry in entries if entry.kind == "file")

    def measure_usage(self, *, at_most: int) -> int:
        """
        Return the bytes on the disk that everything takes; stops counting after ``at_most``.

        :raises FileRefused: if a folder cannot be looked into
        """
        with self._open_root() as root:
            try:
                return measure_folder(root, at_most=at_most, links=self._links)
            except OSError as error:
                path = quote_path(str(error.filename))
                raise FileRefused(f"{path} cannot be used: {error.strerror}") from error

    def _walk_folders(self, path: str) -> Iterator[list[FolderEntry]]:
        """Yield what each folder holds; inner ones that cannot be read are left out."""
        found = self.list_folder(path)
        yield found
        waiting = _inner_folders(found)
        while waiting:
            try:
                found = self.list_folder(waiting.pop())
            except FileRefused:
                continue
            yield found
            waiting += _inner_folders(found)

    @contextmanager
    def _scan_folder(self, path: str) -> Generator[Iterator[FolderEntry]]:
        relative = self.relative_path(path)
        with (
            self._open_root() as root,
            _translate_errors(path),
            open_folder(root, relative, links=self._links) as folder,
            os.scandir(folder) as entries,
        ):
            yield _describe_entries(entries, "" if relative == "." else f"{relative}/")

    @contextmanager
    def _open_root(self) -> Generator[int]:
        try:
            descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise FileRefused(
                f"the workspace {self.root} cannot be opened: {error.strerror}"
            ) from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def _open_parent(self, path: str, *, create: bool = False) -> Generator[tuple[int, str]]:
        """Open the folder of a path; yield it and the name in it."""
        relative = self.relative_path(path)
        if relative == ".":
            raise FileRefused(f"{path!r} is a folder, not a file")
        parent, name = posixpath.split(relative)
        with (
            self._open_root() as root,
            _translate_errors(path),
            open_folder(
                root, parent or ".", create=create and bool(parent), links=self._links
            ) as folder,
        ):
            yield folder, name


@contextmanager
def _translate_errors(path: str) -> Generator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise FileMissing(path) from error
    except OSError as error:
        if error.errno in _WAYS_OUT:
            raise OutsideWorkspace(path) from error
        raise FileRefused(f"{quote_path(path)} cannot be used: {error.strerror}") from error


def _refuse_special(path: str, mode: int) -> None:
    """Reject everything but regular files: devices, pipes and sockets may never end."""
    kind = _KINDS.get(stat.S_IFMT(mode), "special file")
    if kind != "file":
        raise FileRefused(f"{path!r} is a {kind}, not a file")


def _replace_file(folder: int, name: str, content: bytes, mode: int) -> None:
    _remove_abandoned(folder)
    made = f".clew-new-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(made, flags, 0o600, dir_fd=folder)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123  (a descriptor, not a path)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.write(content)
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        os.rename(made, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(made, dir_fd=folder)
        raise
    os.fsync(folder)


def _remove_abandoned(folder: int) -> None:
    """Remove files in the making whose maker is gone: it holds a lock while it lives."""
    for name in filter(_TEMPORARY.fullmatch, os.listdir(folder)):
        with suppress(OSError):
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(name, flags, dir_fd=folder)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(name, dir_fd=folder)
            finally:
                os.close(descriptor)


def _is_temporary(entry: FolderEntry) -> bool:
    return entry.kind == "file" and _TEMPORARY.fullmatch(posixpath.basename(entry.path)) is not None


def _describe_entries(entries: Iterable[os.DirEntry[str]], prefix: str) -> Iterator[FolderEntry]:
    for entry in entries:
        with suppress(FileNotFoundError):  # removed in between
            yield _describe_entry(prefix + entry.name, entry.stat(follow_symlinks=False))


def _inner_folders(entries: list[FolderEntry]) -> list[str]:
    return [entry.path for entry in reversed(entries) if entry.kind == "folder"]


def _describe_entry(path: str, state: os.stat_result) -> FolderEntry:
    return FolderEntry(
        path=path,
        kind=_KINDS.get(stat.S_IFMT(state.st_mode), "special file"),
        size=state.st_size,
        modified=state.st_mtime,
    )
