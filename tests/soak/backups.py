"""
Backups taken in the middle of load and restored on a clean folder; and backups, restores and moves
that are killed at any moment.
"""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from clew.store.backup import files
from clew.store.backup.restore import restore_backup
from clew.store.checks.registry import find_all
from clew.testing import FakeProvider, Hang, echo, reply_by_user_text
from tests import postgres
from tests.acceptance.program import CLEW, Clew, until
from tests.contract import acting
from tests.integration import rich_store, stores
from tests.openers import LASTING, Talk, begin_lasting, restored, said, wait_for_answer
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from clew.store.contract import Tx

ROUNDS = int(os.environ.get("CLEW_SOAK_ROUNDS", "20"))
KILLS = 5 * ROUNDS
LASTINGS, ENTRIES = 3, 20_000
OTHER = "sqlite:///other.db"


def run() -> Table:
    works = (
        ("taken under load, restored", _under_load),
        ("backup killed", _killed_backups),
        ("restore killed", _killed_restores),
        ("move to the other database killed", _killed_moves),
    )
    rows: list[tuple[object, ...]] = []
    with server() as server_url:
        for database, (what, work) in itertools.product(DATABASES, works):
            with fresh(database, server_url) as (url, home):
                rows.append((database, what, *work(url, home, server_url)))
            print(rows[-1], flush=True)
    return Table(
        title="Backups, restores and moves",
        columns=("database", "what", "rounds", "what happened", "violations"),
        rows=tuple(rows),
        passed=all(row[4] == 0 for row in rows),
    )


def _told(violations: list[str]) -> int:
    for sentence in violations:
        print(sentence, flush=True)
    return len(violations)


@contextmanager
def _clean(database_of: str, server_url: str, home: Path) -> Generator[Clew]:
    """An empty home, with an empty store on the same database."""
    if database_of.startswith("sqlite"):
        yield Clew(home)
        return
    with postgres.database(server_url) as url:
        yield Clew(home, {"CLEW_STORE__URL": url})


def _under_load(url: str, home: Path, server_url: str) -> tuple[int, str, int]:
    wrong: list[str] = []
    entries = 0
    busy = Clew(home / "home", {"CLEW_STORE__URL": url})
    for number in range(ROUNDS):
        texts = [f"{LASTING} {number * LASTINGS + n}" for n in range(LASTINGS)]
        script = reply_by_user_text({text: [Hang()] for text in texts}, default=echo)
        with FakeProvider(script) as provider, _clean(url, server_url, home / f"{number}") as clean:
            taken, answered = _taken(busy.asking(provider), number, home / "backup", wrong)
            with restored(clean.asking(provider), home / "backup", taken) as there:
                wrong += _not_as_it_was(there, number, answered)
            entries = taken["counts"]["entry"]
    what = f"{ROUNDS * LASTINGS} turns resumed; {entries:,} entries at last"
    return ROUNDS, what, _told(wrong)


def _not_as_it_was(url: str, number: int, answered: dict[str, list[str]]) -> list[str]:
    for n in range(LASTINGS):
        wait_for_answer(url, number * LASTINGS + n)
    return [
        f"{name} of round {number} is not whole"
        for name, before in answered.items()
        if said(url, name)[: 2 * len(before) : 2] != before
    ]


def _taken(
    clew: Clew, number: int, backup: Path, wrong: list[str]
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """A backup in the middle of load, whose gateway is killed then; what was answered before."""
    with clew.serving() as (url, gateway):
        with Talk(url, people=4, name=f"talk{number}_") as talk:
            for n in range(LASTINGS):
                begin_lasting(url, number * LASTINGS + n)
            until(lambda: min(talk.said().values()) > 5)
            before = {name: texts[:] for name, texts in talk.answered.items()}
            taken = clew.data("backup", str(backup))
            talk.stop()
        gateway.kill()
    wrong += talk.wrong
    return taken, before


def _killed(clew: Clew, longest: float, *args: str) -> bool:
    """Start a command and kill it at any moment; whether it was killed before its end."""
    process = subprocess.Popen(
        [CLEW, *args], env=clew.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        process.wait(random.uniform(0.2, longest))
    except subprocess.TimeoutExpired:
        process.kill()
    return process.wait() != 0


def _timed(clew: Clew, *args: str) -> float:
    began = time.monotonic()
    clew.ok(*args)
    return 1.1 * (time.monotonic() - began)


def _killed_backups(url: str, home: Path, _server_url: str) -> tuple[int, str, int]:
    clew = Clew(home, {"CLEW_STORE__URL": url})
    stores.write(url, home, rich_store.fill, entries=ENTRIES)
    file = home / "backup"
    longest = _timed(clew, "backup", str(file))
    killed, wrong = 0, list[str]()
    for number in range(KILLS):
        stores.write(url, home, acting.accept, acting.message(f"inb_more_{number}"))
        killed += _killed(clew, longest, "backup", str(file))
        try:
            files.verify_seal(file)
            for path in home.glob("backup.[0-9]"):
                files.verify_seal(path)
        except Exception as error:  # noqa: BLE001 - counted
            wrong.append(f"after {number}: {error!r}")
    found = restore_backup(OTHER, home=home, file=file, tell=stores.silent)
    clew.ok("backup", str(file))
    names = sorted(path.name for path in home.glob("backup*"))
    if names != ["backup", "backup.1"]:
        wrong.append(f"left over: {names}")
    return KILLS, f"{killed} killed; {found.counts['inbox']} inputs in the last", _told(wrong)


def _killed_restores(url: str, home: Path, _server_url: str) -> tuple[int, str, int]:
    clew = Clew(home, {"CLEW_STORE__URL": url})
    stores.write(OTHER, home, rich_store.fill, entries=ENTRIES)
    file = home / "backup"
    Clew(home, {"CLEW_STORE__URL": OTHER}).ok("backup", str(file))
    longest = _timed(clew, "restore", str(file))
    killed = replaced = 0
    wrong: list[str] = []
    for number in range(KILLS):
        name = f"inb_mine_{number}"
        stores.write(url, home, acting.accept, acting.message(name))
        killed += _killed(clew, longest, "restore", str(file), "--replace")
        found = stores.read(url, home, find_all)
        wrong += [f"after {number}: {check.name}: {one.detail}" for check, one in found]
        replaced += name not in stores.read(url, home, _inputs)
        for old in home.glob("clew.db.before*"):
            old.unlink()
    clew.ok("restore", str(file), "--replace")
    if stores.differing(OTHER, url, home) != stores.FORGOTTEN:
        wrong.append("the last one is not what was backed up")
    return KILLS, f"{killed} killed, {replaced} replaced the store", _told(wrong)


def _inputs(t: Tx) -> set[str]:
    return {row[0] for row in t.fetch_all("SELECT id FROM inbox")}


def _killed_moves(url: str, home: Path, server_url: str) -> tuple[int, str, int]:
    stores.write(url, home, rich_store.fill, entries=ENTRIES)
    # As if its owner had been gone for a while.
    stores.write(url, home, lambda t: t.execute("UPDATE lease SET expires_at = 1"))
    clew = Clew(home)
    longest = _timed(clew, "migrate-store", url, OTHER)
    killed = resumed = 0
    wrong: list[str] = []
    for number in range(ROUNDS):
        with _target(url, server_url, number) as target:
            killed += _killed(clew, 2 * longest, "migrate-store", url, target)
            if not _is_there(target, home):
                resumed += clew.data("migrate-store", url, target)["resumed"]
            differ = stores.differing(url, target, home)
            if set(differ) - {"client", "lease", "lock", "owner"}:
                wrong.append(f"move {number}: {differ}")
    return ROUNDS, f"{killed} killed, {resumed} went on where they were", _told(wrong)


@contextmanager
def _target(source: str, server_url: str, number: int) -> Generator[str]:
    """Return the target of a move of the store: the other database."""
    if source.startswith("sqlite"):
        with postgres.database(server_url) as url:
            yield url
    else:
        yield f"sqlite:///moved{number}.db"


def _is_there(url: str, home: Path) -> bool:
    try:
        stores.read(url, home, find_all)
    except Exception:  # noqa: BLE001 - whatever it is, it is no store
        return False
    return True
