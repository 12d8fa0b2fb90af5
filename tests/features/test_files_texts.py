"""Files as text: whatever lies in a workspace is shown, changed or refused with a sentence."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING

import pytest

from clew.agent.known_secrets import register_secrets
from clew.features.files import searching
from clew.features.files.editing import encode_text, replace_text
from clew.features.files.listing import MAX_NAMES, list_folder
from clew.features.files.reading import MAX_CHARS, MAX_LINE_CHARS, read_lines
from clew.features.files.searching import MAX_DOCUMENTS, MAX_MATCHES, search_lines
from clew.features.files.turn_workspace import LocatedPath
from clew.sandbox.errors import FileRefused, quote_path
from clew.sandbox.workspace import Workspace
from tests.features.test_documents import make_archive, make_pdf, make_word

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    (tmp_path / "secret").write_text("a secret outside", encoding="utf-8")
    made = Workspace(tmp_path / "work")
    made.create()
    return made


def at(space: Workspace, path: str) -> LocatedPath:
    return LocatedPath(space, path, is_inside=True)


def read(space: Workspace, path: str, line: int = 1, lines: int = 2000) -> str:
    return asyncio.run(read_lines(at(space, path), line=line, lines=lines))


def search(place: LocatedPath, pattern: str, *, names: str) -> str:
    return asyncio.run(search_lines(place, pattern, names=names))


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"", "['x' is empty]"),
        (b"one", "one"),
        (b"one\n\n", "one\n"),
        (b"one\r\ntwo\r\n", "one\ntwo\n[lines end with CRLF]"),
        (b"\xef\xbb\xbfone\n", "one\n[begins with a byte order mark]"),
        ("na\u00efve \U0001f600".encode("utf-16"), "na\u00efve \U0001f600\n[UTF-16]"),
        (
            b"a price of 5 \xa3 and more\n",
            "a price of 5 \ufffd and more\n[1 places are not UTF-8, shown as \ufffd]",
        ),
        (
            b"a\x0cb\x85" + b"c" * 20,
            "a\x0cb\ufffd" + "c" * 20 + "\n[1 places are not UTF-8, shown as \ufffd]",
        ),
    ],
)
def test_a_text_is_shown_with_what_is_odd_about_it(
    space: Workspace, content: bytes, shown: str
) -> None:
    space.write_file("x", content)
    assert read(space, "x") == shown


def test_a_long_text_is_shown_in_parts_that_say_where_to_go_on(space: Workspace) -> None:
    space.write_file("log", b"".join(b"line %d\n" % n for n in range(1, 30_001)))
    assert read(space, "log", 29_999).splitlines() == [
        "line 29999",
        "line 30000",
        "[lines 29,999 to 30,000, the end]",
    ]
    part, seen = read(space, "log", lines=40_000), 0
    while "go on with line=" in part:
        assert len(part) < MAX_CHARS + 200
        *lines, last = part.splitlines()
        assert lines == [f"line {n}" for n in range(seen + 1, seen + len(lines) + 1)]
        seen += len(lines)
        assert last.endswith(f" of 30,000; go on with line={seen + 1}]")
        part = read(space, "log", seen + 1, 40_000)
    space.write_file("one", b"y" * 3_000_000)
    assert len(read(space, "one")) < MAX_LINE_CHARS + 100
    assert "[… 2,990,000 more characters]" in read(space, "one")


def test_a_secret_is_not_cut_in_two_where_a_long_line_is(space: Workspace) -> None:
    secret = "kept-by-the-settings-0123456789"
    register_secrets([secret])
    for room, show in (
        (MAX_LINE_CHARS, lambda: read(space, "cut")),
        (300, lambda: search(at(space, "cut"), "^y", names="*")),
    ):
        space.write_file("cut", b"y" * (room - 15) + secret.encode() + b"y" * 99)
        assert "kept-" not in show()


def test_what_is_no_text_is_refused_with_a_sentence(space: Workspace) -> None:
    space.write_file("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0")
    space.write_file("noise", bytes(range(128, 256)) * 9)
    space.write_file("text", b"one\n")
    (space.root / "folder").mkdir()
    os.mkfifo(space.root / "pipe")
    (space.root / "out").symlink_to("../secret")
    (space.root / "device").symlink_to("/dev/zero")
    with (space.root / "sparse").open("wb") as file:
        file.truncate(2**31)
    for path, line, told in (
        ("picture.png", 1, "'picture.png' is binary (11 bytes), not text"),
        ("noise", 1, "'noise' is binary (1,152 bytes), not text"),
        ("text", 2, "'text' has 1 lines, there is no line 2"),
        ("folder", 1, "'folder' is a folder, not a file"),
        ("pipe", 1, "'pipe' is a named pipe, not a file"),
        ("out", 1, "'out' is outside of the workspace"),
        ("device", 1, "'device' is outside of the workspace"),
        ("../secret", 1, "'../secret' is outside of the workspace"),
        ("/etc/passwd", 1, "'/etc/passwd' is outside of the workspace"),
        ("none/x", 1, "there is no 'none/x' in the workspace"),
        ("text/x", 1, "'text/x' cannot be used: Not a directory"),
        ("", 1, "a path must be text without NUL, and not be empty"),
        ("a\0b", 1, "a path must be text without NUL, and not be empty"),
        ("n" * 300, 1, f"{quote_path('n' * 300)} cannot be used: File name too long"),
        ("sparse", 1, "'sparse' has 2,147,483,648 bytes; at most 20,000,000 can be used at once"),
    ):
        with pytest.raises(FileRefused) as raised:
            read(space, path, line)
        assert str(raised.value) == told
    assert search(at(space, "."), "secret|one", names="*").splitlines() == [
        "text:1: one",
        "[not searched, no plain text or too large: sparse; see read_file]",
    ]


def test_a_link_that_is_swapped_while_it_is_read_never_leads_out(space: Workspace) -> None:
    space.write_file("safe", b"inside\n")
    link, over = space.root / "link", threading.Event()
    link.symlink_to("safe")

    def swap() -> None:
        for target in ("../secret", "safe") * 10_000:
            (space.root / "next").symlink_to(target)
            (space.root / "next").rename(link)
            if over.is_set():
                return

    thread = threading.Thread(target=swap)
    thread.start()
    seen: set[str] = set()
    try:
        for _ in range(400):
            try:
                seen.add(read(space, "link"))
            except FileRefused as error:
                seen.add(str(error))
    finally:
        over.set()
        thread.join()
    assert seen <= {"inside", "'link' is outside of the workspace"}


def test_names_that_could_be_taken_for_something_else_are_quoted(space: Workspace) -> None:
    for name in ("a b", "two\nlines", " first", "caf\u00e9", "zero\u200bwidth"):
        space.write_file(name, b"x")
    (space.root / os.fsdecode(b"bad\xff")).touch()
    (space.root / "folder").mkdir()
    (space.root / "link").symlink_to("/")
    assert list_folder(at(space, "."), names="*", recursive=False).splitlines() == [
        '" first"  1',
        "a b  1",
        "bad\ufffd  0",
        "caf\u00e9  1",
        "folder/",
        "link  (symbolic link)",
        '"two\\nlines"  1',
        '"zero\\u200bwidth"  1',
    ]
    assert list_folder(at(space, "folder"), names="*", recursive=False) == "[nothing]"


def test_a_glob_is_of_names_or_of_paths_and_lists_are_short(space: Workspace) -> None:
    for name in ("a.py", "src/b.py", "src/c.txt", *(f"many/{n:04}" for n in range(MAX_NAMES + 1))):
        space.write_file(name, b"")
    assert list_folder(at(space, "."), names="*.py", recursive=True) == "a.py  0\nsrc/b.py  0"
    assert list_folder(at(space, "."), names="src/*", recursive=True) == "src/b.py  0\nsrc/c.txt  0"
    lines = list_folder(at(space, "many"), names="*", recursive=False).splitlines()
    assert lines[-1] == f"[only the first {MAX_NAMES}: narrow the path or the names]"
    assert len(lines) == MAX_NAMES + 1


def test_a_search_finds_lines_and_stops_at_its_limits(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    space.write_file("a.txt", b"one\r\ntwo\r\n")
    space.write_file("b/c.md", b"two " + b"x" * 500 + b"\n")
    space.write_file("b/d.bin", b"two\0")
    found = search(at(space, "."), "^tw", names="*").splitlines()
    assert found[0] == "a.txt:2: two"
    assert found[1].startswith("b/c.md:1: two xxx")
    assert len(found[1]) < 320
    assert search(at(space, "a.txt"), "two$", names="*") == "a.txt:2: two"
    assert search(at(space, "."), "two", names="*.py") == "[nothing found]"
    with pytest.raises(FileRefused, match="is not a regular expression"):
        search(at(space, "."), "(", names="*")
    space.write_file("c/report.pdf", b"%PDF-1.7 two")
    space.write_file("c/data.xlsx", b"PK\x03\x04two")
    monkeypatch.setattr(searching, "_FILE_LIMIT", 600)
    space.write_file("c/long.txt", b"two\n" * 400)
    left_out = "[not searched, no plain text or too large: {}; see read_file]"
    assert search(at(space, "c"), "two", names="*").splitlines() == [
        "[nothing found]",
        left_out.format("c/data.xlsx, c/long.txt, c/report.pdf"),
    ]
    monkeypatch.undo()
    space.write_file("many", b"two\n" * (MAX_MATCHES + 1))
    lines = search(at(space, "many"), "two", names="*").splitlines()
    assert lines[-1] == f"[only the first {MAX_MATCHES}: narrow the path or the names]"
    space.write_file("slow", b"a" * 40 + b"!\n")
    monkeypatch.setattr(searching, "_SECONDS", 0.2)
    told = search(at(space, "slow"), r"^(a|aa|a*)+\1$", names="*")
    assert told == "[stopped after 0.2 s: narrow the path or the names]"


async def test_a_search_reads_documents_and_names_those_for_which_there_is_no_time(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    space.write_file("a.pdf", make_pdf("the first page", "a total of 7"))
    space.write_file("b.docx", make_word())
    space.write_file("c.txt", b"a total of 8\n")
    space.write_file("d.zip", make_archive(note_txt="a total of 9"))
    lines = (await search_lines(at(space, "."), "total|milk", names="*")).splitlines()
    assert lines == [
        "c.txt:1: a total of 8",
        "a.pdf:4: a total of 7",
        "b.docx:5: milk\t1 \u20ac",
        "[not searched, no plain text or too large: d.zip; see read_file]",
    ]
    monkeypatch.setattr(searching, "MAX_DOCUMENTS", 1)
    lines = (await search_lines(at(space, "."), "total|milk", names="*.[bpdz]*")).splitlines()
    assert lines[0] == "a.pdf:4: a total of 7"
    assert "too large: b.docx, d.zip;" in lines[1]
    monkeypatch.setattr(searching, "MAX_DOCUMENTS", MAX_DOCUMENTS)
    monkeypatch.setattr(searching, "_SECONDS", 0.0)
    told = await search_lines(at(space, "a.pdf"), "total", names="*")
    assert told.splitlines()[-1].startswith("[not searched, no plain text or too large: a.pdf;")


@pytest.mark.parametrize(
    ("content", "old", "new", "every", "after"),
    [
        (b"one two", "two", "2", False, b"one 2"),
        (b"a a", "a", "", True, b" "),
        (b"one\r\ntwo\r\n", "one\ntwo", "1\n2", False, b"1\r\n2\r\n"),
        (b"one\r\ntwo\n", "two\n", "2\n", False, b"one\r\n2\n"),
        (b"\xef\xbb\xbfone \xff two", "two", "2", False, b"\xef\xbb\xbfone \xff 2"),
    ],
)
def test_an_edit_changes_what_it_names_and_nothing_else(
    content: bytes, old: str, new: str, every: bool, after: bytes
) -> None:
    assert replace_text("x", content, old, new, every=every) == after


@pytest.mark.parametrize(
    ("content", "old", "new", "told"),
    [
        (b"a a", "a", "b", r"old is in 'x' 2 times: give more of the text around it"),
        (b"one", "two", "2", "old is not in 'x': read the file again"),
        (b"one 2", "two", "2", "old is not in 'x', but new is: read the file again"),
        (b"one", "two", "", "old is not in 'x': read the file again"),
        (b"one", "", "2", "old is empty: write_file creates a file"),
        (b"one", "\udc80", "2", "the text cannot be written as UTF-8"),
    ],
)
def test_an_edit_that_is_not_clear_is_refused(
    content: bytes, old: str, new: str, told: str
) -> None:
    with pytest.raises(FileRefused, match=told):
        replace_text("x", content, old, new, every=False)
    assert encode_text("x") == b"x"
