"""``clew backup``, ``restore`` and ``migrate-store`` within the process of the test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from clew.cli import entry_point
from tests.integration import stores

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    stores.fill("sqlite:///clew.db", home)
    return home


def run(home: Path, *args: str) -> int:
    return entry_point.run_command(["--home", str(home), *args])


def data(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_the_result_is_a_sentence_for_people(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, other = str(tmp_path / "backup"), tmp_path / "other"
    for place, args, told, remarks in [
        (home, ("backup", file), "1 conversation with 22 entries", "pages were written"),
        (home, ("backup", file), file, f"the previous backup is {file}.1"),
        (other, ("restore", file), f"{other}/clew.db: 1 conversation", "at the next start: 1"),
        (other, ("restore", file, "--replace"), "22 entries", "may have been delivered: 2"),
        (other, ("restore", file, "--replace"), "22 entries", "previous store is now"),
        (home, ("migrate-store", "sqlite:///clew.db", "sqlite:///b.db"), "b.db", "store.url"),
    ]:
        assert run(place, *args) == 0
        printed = capsys.readouterr()
        assert told in printed.out
        assert remarks in printed.err


def test_the_result_is_data_for_programs(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, other = str(tmp_path / "backup"), tmp_path / "other"
    assert run(home, "backup", file, "--json") == 0
    taken = data(capsys)
    assert (taken["file"], taken["older"], taken["repairable"]) == (file, [], [])
    assert taken["pages"]["written"] == taken["pages"]["all"] > 80
    assert run(home, "backup", file, "--verify", "--json") == 0
    verified = data(capsys)
    assert {one: taken[one] for one in verified} == verified
    assert run(other, "restore", file, "--json") == 0
    restored = data(capsys)
    assert restored["taken_at"] == taken["taken_at"]
    assert restored["counts"] == taken["counts"]
    assert (restored["replaced"], restored["running_turns"]) == (None, 1)
    assert restored["unknown_deliveries"] == 2
    assert run(home, "migrate-store", "sqlite:///clew.db", "sqlite:///b.db", "--json") == 0
    moved = data(capsys)
    assert (moved["counts"], moved["resumed"]) == (taken["counts"], False)


def test_an_impossible_request_gives_a_sentence_and_an_exit_code(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "letter").write_text("Dear Theseus")
    for args, code, told in [
        (("backup", str(tmp_path / "letter")), 2, "not a backup"),
        (("backup", str(tmp_path / "backup"), "--keep", "0"), 2, "--keep"),
        (("restore", str(tmp_path / "nothing")), 2, "there is no backup"),
        (("restore", str(tmp_path / "letter")), 1, "not a backup"),
        (("migrate-store", "sqlite:///none.db", "sqlite:///b.db"), 2, "no store"),
        (("migrate-store", "sqlite:///clew.db", "mysql://x"), 2, "mysql"),
        (("migrate-store", "sqlite:///clew.db", "sqlite:///clew.db"), 2, "not empty"),
    ]:
        assert run(home, *args) == code
        printed = capsys.readouterr()
        assert told in printed.err
        assert printed.out == ""
        assert "Traceback" not in printed.err
