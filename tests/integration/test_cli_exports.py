"""``clew sessions export|import|verify``, run in this process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from clew.cli.entry_point import run_command
from clew.cli.output import Output
from clew.cli.progress import ProgressBar
from clew.engine import imports

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Clew = Callable[..., tuple[int, str, str]]


@pytest.fixture
def clew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Clew:
    def clew(*args: object, home: str = "home", token: str = "none") -> tuple[int, str, str]:
        flags = ["--set", "model.name=offline", "--set", f"api.token={token}"]
        code = run_command(["--home", str(tmp_path / home), *flags, *map(str, args)])
        out, err = capsys.readouterr()
        return code, out, err

    return clew


@pytest.fixture
def export(clew: Clew, tmp_path: Path) -> Path:
    """A file with two conversations and the mark of a third."""
    for name in ("one", "two", "three"):
        assert clew("chat", "-c", name, f"hello {name}")[0] == 0
    assert clew("sessions", "delete", "three", "--yes")[0] == 0
    path = tmp_path / "export.jsonl"
    assert clew("sessions", "export", "--all", "-o", path) == (
        0,
        "",
        f"exported 2 conversations to {path}\n",
    )
    return path


def items(out: str) -> list[tuple[str, int]]:
    return [(item["result"], item["entries"]) for item in json.loads(out)["items"]]


def test_an_export_goes_to_another_home_and_comes_back_the_same(
    clew: Clew, export: Path, tmp_path: Path
) -> None:
    assert export.stat().st_mode & 0o777 == 0o600 or os.name == "nt"
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []
    code, out, _ = clew("sessions", "import", export, "--json", home="other")
    assert (code, items(out)) == (0, [("imported", 2), ("imported", 2)])
    assert json.loads(out)["tombstones"] == 1
    again = clew("sessions", "export", "--all", home="other")[1]
    assert again == export.read_text()
    code, out, _ = clew("sessions", "import", export, home="other")
    assert (code, out) == (0, "2 known already; 0 entries were new\n")
    assert "hello one" in clew("sessions", "search", "hello one", home="other")[1]
    assert clew("sessions", "show", "one", home="other")[0] == 2
    assert clew("sessions", "import", export, "--routes", home="other")[0] == 0
    assert "hello one" in clew("sessions", "show", "one", home="other")[1]


def test_copies_and_deleted_conversations_are_reported(clew: Clew, export: Path) -> None:
    assert clew("chat", "-c", "one", "more")[0] == 0
    assert clew("sessions", "delete", "two", "--yes")[0] == 0
    assert clew("sessions", "import", export, home="other")[0] == 0
    assert clew("sessions", "import", export, "--routes", home="other")[0] == 0
    assert clew("chat", "-c", "one", "something else", home="other")[0] == 0
    newer = export.with_name("newer.jsonl")
    assert clew("sessions", "export", "one", "-o", newer)[0] == 0
    _, out, _ = clew("sessions", "import", newer, home="other")
    assert " is here as cnv_" in out
    assert "1 imported as copies; 4 entries were new" in out
    _, out, _ = clew("sessions", "import", export)
    assert "it was deleted here" in out
    assert items(clew("sessions", "import", export, "--deleted", "--json")[1])[1] == ("copied", 2)


def test_an_export_is_verified_without_a_store(clew: Clew, export: Path) -> None:
    code, out, _ = clew("sessions", "verify", export, home="nowhere")
    assert (code, out) == (
        0,
        "unchanged: 2 conversations, 4 entries, 1 mark of deletions\n",
    )
    data = json.loads(clew("sessions", "verify", export, "--json")[1])
    assert data["clean"] is True
    assert data["checked"]["entries"] == 4
    assert data["conversations"][0]["last_hash"] in export.read_text()


def named(clew: Clew, path: Path, lines: list[str]) -> list[Any]:
    path.write_text("".join(lines))
    code, out, _ = clew("sessions", "verify", path, "--json")
    assert code == 1
    found = json.loads(out)["findings"]
    return [(one["line"], one["conversation"], one["seq"]) for one in found]


def test_one_flipped_bit_one_removed_and_one_swapped_entry_are_found_and_named(
    clew: Clew, export: Path, tmp_path: Path
) -> None:
    lines = export.read_text().splitlines(keepends=True)
    first, second = (at for at, line in enumerate(lines) if '"seq":1,' in line)
    name = json.loads(lines[first])["conversation"]
    path = tmp_path / "damaged.jsonl"
    flipped = [*lines[:first], lines[first].replace("hello", "hellO"), *lines[first + 1 :]]
    assert named(clew, path, flipped) == [(first + 1, name, 1)]
    code, out, err = clew("sessions", "verify", path)
    assert (code, f"line {first + 1}, conversation {name}, entry 1: it was changed" in out) == (
        1,
        True,
    )
    assert err == f"1 finding in {len(lines)} lines\n"
    code, _, err = clew("sessions", "import", path, home="other")
    assert (code, "nothing was imported" in err, f"conversation {name}, entry 1" in err) == (
        1,
        True,
        True,
    )
    assert named(clew, path, lines[:first] + lines[first + 1 :]) == [(first + 1, name, 1)]
    swapped = list(lines)
    swapped[first], swapped[first + 1] = lines[first + 1], lines[first]
    assert named(clew, path, swapped)[0][1:] in [(name, 1), (name, 2)]
    assert second > first + 1


def test_an_export_is_compared_with_an_earlier_one(clew: Clew, export: Path) -> None:
    assert clew("chat", "-c", "one", "more")[0] == 0
    assert clew("sessions", "delete", "two", "--yes")[0] == 0
    later, part = export.with_name("later.jsonl"), export.with_name("part.jsonl")
    assert clew("sessions", "export", "--all", "-o", later)[0] == 0
    assert clew("sessions", "verify", later, "--against", export)[0] == 0
    assert clew("sessions", "export", "one", "-o", part)[0] == 0
    code, out, _ = clew("sessions", "verify", part, "--against", export)
    assert (code, out.count("is missing, and there is no record of its deletion")) == (1, 1)
    assert out.count("the record of its deletion is missing") == 1
    _, out, _ = clew("sessions", "verify", export, "--against", later)
    assert "it had 4 entries before, and has 2" in out
    code, _, err = clew("sessions", "export", "one", "-o", part)
    assert (code, "--force" in err) == (2, True)
    assert clew("sessions", "export", "one", "-o", part, "--force")[0] == 0
    part.write_text("nothing")
    code, _, err = clew("sessions", "verify", export, "--against", part)
    assert (code, "nothing can be compared with it" in err) == (1, True)


def test_secrets_are_left_out_of_every_form(clew: Clew) -> None:
    assert clew("chat", "my key is sk-secret-1")[0] == 0
    for form in ("jsonl", "markdown", "html"):
        code, out, err = clew("sessions", "export", "main", "--format", form, token="sk-secret-1")
        assert (code, "my key is ********" in out, "sk-secret" in out) == (0, True, False)
        assert "2 entries contain a secret of the settings" in err


def test_the_page_of_one_conversation_has_its_title(clew: Clew) -> None:
    assert clew("chat", "hello")[0] == 0
    assert clew("sessions", "rename", "main", "Plans <today>")[0] == 0
    page = clew("sessions", "export", "main", "--format", "html")[1]
    assert "<title>Plans &lt;today&gt;</title>" in page
    everything = clew("sessions", "export", "--all", "--format", "html")[1]
    assert "<title>Conversations</title>" in everything


def test_mistakes_are_reported_in_a_sentence(clew: Clew, tmp_path: Path) -> None:
    assert "pass --all" in clew("sessions", "export")[2]
    assert "pass --all" in clew("sessions", "export", "main", "--all")[2]
    assert "`clew sessions list` shows" in clew("sessions", "export", "none")[2]
    assert clew("sessions", "import", tmp_path / "none")[0] == 2
    folder = tmp_path / "none" / "file"
    code, _, err = clew("sessions", "export", "--all", "-o", folder)
    assert (code, "cannot be written" in err) == (1, True)
    (tmp_path / "text").write_text("hello\n")
    code, _, err = clew("sessions", "import", tmp_path / "text")
    assert (code, "line 1: the file is not an export of Clew" in err) == (1, True)


def test_an_import_that_is_stopped_says_how_to_continue(
    clew: Clew, export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = imports.ConversationImporter.import_conversation

    async def pressed(*args: Any, **kwargs: Any) -> Any:
        taken = await take(*args, **kwargs)
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0)
        return taken

    # Whatever the program that runs the tests does with it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(imports.ConversationImporter, "import_conversation", pressed)
            code, _, err = clew("sessions", "import", export, home="other")
    finally:
        signal.signal(signal.SIGINT, before)
    assert code == 130
    told = "stopped: 0 of 2 conversations are imported; the same command continues from here"
    assert err.strip() == told
    _, out, _ = clew("sessions", "import", export, "--json", home="other")
    assert items(out) == [("known", 0), ("imported", 2)]


class Screen:
    """A terminal that keeps what it was sent."""

    def __init__(self) -> None:
        self.sent = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        self.sent += text

    def flush(self) -> None:
        pass


def test_a_bar_is_drawn_and_taken_away_on_a_terminal() -> None:
    screen: Any = Screen()
    progress = ProgressBar(Output(screen), "importing", total=4)
    progress.update(1)
    assert "importing [########......................]  25%" in screen.sent
    drawn = screen.sent
    progress.update(2)
    assert screen.sent == drawn, "not more often than one can see"
    progress.clear_line()
    assert screen.sent.endswith("\r\x1b[K")
