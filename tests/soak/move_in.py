"""
What other systems wrote is taken over by ``clew import``: undisturbed, and killed twenty times.

The samples were written by the real programs. Of each, both stores must hold the same bytes, a
second import must add nothing, and everything must be sound.

``CLEW_MOVE_IN_SAMPLES`` names a folder with larger samples to take over instead of those of the
suite. Each is a folder named as its system, or ``SYSTEM.WORD`` where there are several.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.foreign.registry import SYSTEMS
from tests.acceptance.program import Clew
from tests.foreign.folders import SAMPLES, copy_folder
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

KILLS = 20
_OFFLINE = {"CLEW_MODEL__NAME": "offline"}


def run() -> Table:
    with server() as url, tempfile.TemporaryDirectory() as folder:
        rows = [
            (sample.name, database, *_take_in(sample, database, url, Path(folder)))
            for sample in _list_samples()
            for database in DATABASES
        ]
    columns = (
        "system", "database", "conversations", "messages", "kept beside", "entries",
        "kills", "again", "wrong",
    )  # fmt: skip
    return Table(
        title="Moving in",
        columns=columns,
        rows=tuple(rows),
        passed=all(not row[-1] and not row[-2] for row in rows),
    )


def _list_samples() -> Sequence[Path]:
    folder = Path(os.environ.get("CLEW_MOVE_IN_SAMPLES") or SAMPLES)
    return sorted(one for one in folder.iterdir() if one.is_dir() and _name_system(one) in SYSTEMS)


def _name_system(sample: Path) -> str:
    return sample.name.partition(".")[0].replace("_", "-")


def _take_in(sample: Path, database: str, server_url: str, folder: Path) -> tuple[object, ...]:
    place = folder / f"{sample.name}-{database}"
    place.mkdir()
    command = ("import", _name_system(sample), str(copy_folder(sample, place)))
    with fresh(database, server_url) as (url, home):
        killed = Clew(home, {**_OFFLINE, "CLEW_STORE__URL": url})
        row = _take(command, Clew(place / "calm", _OFFLINE), killed)
    print(sample.name, database, row)
    return row


def _take(command: Sequence[str], calm: Clew, killed: Clew) -> tuple[object, ...]:
    found = calm.data(*command)
    kills = sum(_kill(killed, command, after) for after in _list_delays())
    ended = killed.data(*command)
    again = killed.data(*command)["taken"]["entries"]
    wrong = list(_list_faults(calm, killed, found, ended))
    for fault in wrong:
        print(fault)
    beside = sum(found["events"].values())
    counts = (found["conversations"], found["messages"], beside, found["taken"]["entries"])
    return (*counts, kills, again, len(wrong))


def _list_delays() -> Sequence[float]:
    """Return seconds after which an import is killed: each run comes a little further."""
    dice = random.Random(11)
    return [0.1 + 0.015 * number + dice.uniform(0, 0.05) for number in range(KILLS)]


def _kill(clew: Clew, command: Sequence[str], after: float) -> bool:
    """Start an import and kill it; return whether it was still running."""
    with clew.started(*command, "--json") as process:
        time.sleep(after)
        return process.poll() is None


def _list_faults(
    calm: Clew, killed: Clew, found: dict[str, Any], ended: dict[str, Any]
) -> Iterator[str]:
    stored = found["messages"] + sum(found["events"].values())
    if found["taken"]["entries"] != stored:
        yield f"{found['taken']['entries']} entries of {stored}"
    if ended["messages"] != found["messages"]:
        yield "the source changed"
    if calm.ok("sessions", "export", "--all") != killed.ok("sessions", "export", "--all"):
        yield "the stores differ"
    for clew in (calm, killed):
        if not clew.data("fsck")["clean"]:
            yield "not sound"
