"""Files of a workspace: nothing outside of it is read or written, by whatever name."""

from __future__ import annotations

import fcntl
import os
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from clew.sandbox import beneath, workspace
from clew.sandbox.errors import FileMissing, FileRefused, FileTooLarge, OutsideWorkspace
from clew.sandbox.workspace import Workspace, name_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = b"a secret outside"


@pytest.fixture(params=[beneath.open_by_kernel, beneath.open_by_component])
def space(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Workspace:
    monkeypatch.setattr(beneath, "_find_opener", lambda: request.param)
    (tmp_path / "secret").write_bytes(SECRET)
    (tmp_path / "elsewhere").mkdir()
    made = Workspace(tmp_path / "work" / "local")
    made.create()
    return made


def test_a_written_file_is_read_and_listed(space: Workspace) -> None:
    space.write_file("notes/a b\n\U0001f600.txt", b"one")
    space.write_file("notes/a b\n\U0001f600.txt", b"two")
    absolute = str(space.root / "notes" / "x.bin")
    space.write_file(absolute, b"\xff\0")
    assert space.read_file("./notes//../notes/a b\n\U0001f600.txt") == b"two"
    assert space.read_file("~/notes/x.bin") == b"\xff\0"
    assert [entry.path for entry in space.list_folder("notes")] == [
        "notes/a b\n\U0001f600.txt",
        "notes/x.bin",
    ]
    assert [entry.path for entry in space.iter_files()] == [
        "notes/a b\n\U0001f600.txt",
        "notes/x.bin",
    ]
    found = space.describe_file("notes/x.bin")
    assert found is not None
    assert (found.kind, found.size) == ("file", 2)
    assert space.describe_file("notes/none") is None
    assert space.describe_file("none/none") is None
    space.remove_file("notes/x.bin")
    space.remove_file("notes/x.bin")
    with pytest.raises(FileMissing, match=r"there is no 'notes/x\.bin'"):
        space.read_file("notes/x.bin")
    assert space.root.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", "a/../../secret", "..", "/", "../local-2/x"]
)
def test_a_path_that_leads_out_is_refused(space: Workspace, path: str) -> None:
    with pytest.raises(OutsideWorkspace, match="outside of the workspace"):
        space.read_file(path)
    with pytest.raises(OutsideWorkspace):
        space.write_file(path, b"x")
    with pytest.raises(OutsideWorkspace):
        space.list_folder(path)


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800"])
def test_an_invalid_path_is_refused(space: Workspace, path: str) -> None:
    with pytest.raises(FileRefused):
        space.read_file(path)


@pytest.mark.parametrize("target", ["../../secret", "absolute", "folder"])
def test_a_link_out_is_neither_read_nor_written_through(
    space: Workspace, tmp_path: Path, target: str
) -> None:
    link = space.root / "link"
    link.symlink_to(
        {"absolute": tmp_path / "secret", "folder": tmp_path / "elsewhere"}.get(target, target)
    )
    inner = "link/new.txt" if target == "folder" else "link"
    for act in (
        lambda: space.read_file(inner),
        lambda: space.write_file(inner, b"x"),
        lambda: space.list_folder("link"),
    ):
        with pytest.raises(FileRefused):
            act()
    assert (tmp_path / "secret").read_bytes() == SECRET
    assert not list((tmp_path / "elsewhere").iterdir())
    assert [entry.kind for entry in space.list_folder()] == ["symbolic link"]
    if target != "folder":
        space.remove_file("link")
        assert (tmp_path / "secret").read_bytes() == SECRET


def test_a_file_that_is_not_regular_is_refused_at_once(space: Workspace) -> None:
    os.mkfifo(space.root / "pipe")
    (space.root / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(space.root / "socket"))
    for name in ("pipe", "folder", "socket"):
        with pytest.raises(FileRefused):
            space.read_file(name)
        with pytest.raises(FileRefused, match=r"is a (named pipe|folder|socket), not a file"):
            space.write_file(name, b"x")
    with pytest.raises(FileRefused, match="folder"):
        space.remove_file("folder")
    assert [entry.kind for entry in space.list_folder()] == ["folder", "named pipe", "socket"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_is_refused(space: Workspace) -> None:
    with suppress(PermissionError):  # a container may forbid it, and then there is none
        os.mknod(space.root / "zero", 0o666 | 0o020000, os.makedev(1, 5))
        with pytest.raises(FileRefused):
            space.read_file("zero")


def test_a_large_file_is_refused_by_its_size_without_being_read(space: Workspace) -> None:
    (space.root / "huge").touch()
    os.truncate(space.root / "huge", 2_000_000_000)
    with pytest.raises(FileTooLarge, match="2,000,000,000 bytes; at most 20,000,000"):
        space.read_file("huge")
    with pytest.raises(FileTooLarge):
        space.write_file("small", b"12345", limit=4)
    assert space.measure_usage(at_most=10**12) < 1_000_000, "holes take no space"


def test_a_file_in_the_making_is_removed_once_its_maker_is_gone(space: Workspace) -> None:
    names = {kind: f".clew-new-{kind * 8}" for kind in ("a1", "b2")}
    for name in (*names.values(), ".clew-new-notes"):
        (space.root / name).write_text("half")
    with (space.root / names["b2"]).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        space.write_file("new", b"whole")
        assert sorted(each.name for each in space.root.iterdir()) == [
            names["b2"],
            ".clew-new-notes",
            "new",
        ]
    assert [each.path for each in space.list_folder()] == [".clew-new-notes", "new"]


def test_a_failed_write_leaves_the_old_content_and_nothing_else(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    space.write_file("a.txt", b"old")
    (space.root / "a.txt").chmod(0o755)

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(FileRefused, match="No space left"):
            space.write_file("a.txt", b"new")
    assert [path.name for path in space.root.iterdir()] == ["a.txt"]
    assert space.read_file("a.txt") == b"old"
    space.write_file("a.txt", b"new")
    assert (space.root / "a.txt").stat().st_mode & 0o777 == 0o755, "still a program"


def test_a_link_that_is_swapped_in_between_never_wins(space: Workspace, tmp_path: Path) -> None:
    inside, outside = space.root / "d", tmp_path / "elsewhere"
    (outside / "f").write_bytes(SECRET)
    space.write_file("d/f", b"inside")
    space.write_file("good/f", b"inside")
    stopped = threading.Event()

    def swap() -> None:
        while not stopped.is_set():
            with suppress(OSError):
                inside.rename(space.root / "aside")
            with suppress(OSError):
                inside.symlink_to(outside)
                inside.unlink()
            with suppress(OSError):
                (space.root / "aside").rename(inside)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for turn in range(150):
            with suppress(FileRefused):
                assert space.read_file("d/f") != SECRET
            with suppress(FileRefused):
                space.write_file(f"d/new-{turn % 8}", b"x")
    finally:
        stopped.set()
        swapper.join()
    assert [path.name for path in outside.iterdir()] == ["f"]
    assert (outside / "f").read_bytes() == SECRET


def test_usage_that_cannot_be_counted_is_not_taken_for_small(space: Workspace) -> None:
    deep = space.root
    for _ in range(20):
        deep = deep / ("x" * 250)
        with suppress(OSError):
            deep.mkdir()
    space.write_file("a", b"x" * 10_000)
    assert space.measure_usage(at_most=10**9) >= 10_000
    # A path longer than the kernel takes, made by going down one folder after the other.
    here = os.open(space.root, os.O_RDONLY)
    for _ in range(20):
        with suppress(FileExistsError):
            os.mkdir("y" * 250, dir_fd=here)
        inner = os.open("y" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    with os.fdopen(os.open("z", os.O_CREAT | os.O_WRONLY, dir_fd=here), "wb") as file:
        file.write(b"x" * 500_000)
    os.close(here)
    try:
        assert space.measure_usage(at_most=10**9) >= 500_000
    except FileRefused as error:
        assert "too long" in str(error)  # noqa: PT017  (either is right)


def test_a_folder_with_too_many_names_is_reported_and_still_counted(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "FOLDER_LIMIT", 3)
    for number in range(4):
        space.write_file(f"full/{number}", b"")
    space.write_file("few/1", b"x")
    with pytest.raises(FileRefused, match="more than 3 names"):
        space.list_folder("full")
    assert [entry.path for entry in space.iter_files()] == ["few/1"]
    assert space.measure_usage(at_most=10**9) > 7 * 1024


def test_a_workspace_that_was_closed_is_opened_again(space: Workspace) -> None:
    space.root.chmod(0o050)
    space.create()
    assert space.root.stat().st_mode & 0o777 == 0o750


def scopes() -> Iterator[str]:
    yield from ("local", "LOCAL", "person:telegram:dm:42", "person/telegram/dm/42", "..", "", "-x")
    yield from ("a" * 300, "a" * 301, "\u00e9", "e\u0301", ".git", "chat:slack:T1:C2")


def test_each_scope_has_a_folder_of_its_own_with_a_plain_name() -> None:
    names = [name_folder(scope) for scope in scopes()]
    assert len({name.lower() for name in names}) == len(names)
    assert all(name and name[0] not in ".-" and len(name) < 64 for name in names)
    assert all(name.isascii() and "/" not in name for name in names)
    assert name_folder("local") == "local"
