"""
A backup taken in the middle of load (cases B067, B057): whatever opens the store disturbs nobody,
and what is restored on a clean folder is whole, and goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clew.testing import FakeProvider, Hang, echo, reply_by_user_text
from tests.acceptance.program import Clew, until
from tests.acceptance.terminal import Terminal
from tests.openers import (
    LASTING,
    Talk,
    begin_lasting,
    open_and_close,
    restored,
    said,
    wait_for_answer,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.databases import Databases

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

LASTINGS = 2


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def two(request: pytest.FixtureRequest, clew: Clew, tmp_path: Path) -> Iterator[tuple[Clew, Clew]]:
    """A program, and another one with a home and a store of its own on the same database."""
    if request.param == "sqlite":
        yield clew, elsewhere(clew, None, tmp_path / "clean")
        return
    databases: Databases = request.getfixturevalue("postgres_databases")
    with databases.migrated() as one, databases.migrated() as other:
        yield elsewhere(clew, one, clew.home), elsewhere(clew, other, tmp_path / "clean")


def elsewhere(clew: Clew, url: str | None, home: Path) -> Clew:
    """A home of its own, with its own store on the same database."""
    return Clew(home, {**clew.env, **({"CLEW_STORE__URL": url} if url else {})})


def test_a_store_is_opened_by_others_backed_up_and_restored_under_load(
    two: tuple[Clew, Clew], tmp_path: Path
) -> None:
    (clew, clean), backup = two, tmp_path / "backup"
    texts = [f"{LASTING} {number}" for number in range(LASTINGS)]
    script = reply_by_user_text({text: [Hang()] for text in texts}, default=echo)
    with FakeProvider(script) as provider:
        busy, clean = clew.asking(provider), clean.asking(provider)
        with busy.serving() as (url, server), Talk(url, people=2, pause=0.05) as talk:
            for number in range(LASTINGS):
                begin_lasting(url, number)
            until(lambda: [r.reply for r in provider.requests].count("Hang") == LASTINGS)
            before = talk.said()
            taken = open_and_close(busy, backup)
            after = talk.said()
            talk.stop()
            server.kill()
        assert talk.wrong == []
        assert all(after[name] > before[name] for name in after), "it stood still meanwhile"
        with restored(clean, backup, taken) as url:
            for number in range(LASTINGS):
                wait_for_answer(url, number)
            for name, count in before.items():
                # Answers from before the backup are in it; later ones may be.
                texts = said(url, name)
                assert texts[: 2 * count : 2] == talk.answered[name][:count]
                assert len(texts) <= 2 * (after[name] + 1)


def test_on_a_terminal_a_backup_and_a_restore_say_what_they_do(clew: Clew, tmp_path: Path) -> None:
    clew.ok("chat", "hello there")
    with Terminal(clew, "backup", str(tmp_path / "backup")) as terminal:
        terminal.see("copying pages")
        terminal.see("verifying")
        terminal.see("1 conversation with 2 entries")
        assert terminal.ended() == 0
    clean = Clew(tmp_path / "clean", clew.env)
    with Terminal(clean, "restore", str(tmp_path / "backup")) as terminal:
        terminal.see("1 conversation with 2 entries")
        terminal.see("as of 20")
        assert terminal.ended() == 0
