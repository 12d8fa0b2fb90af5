"""
A disk that fills up at job k of a batch of n, and at COMMIT: what is acknowledged is stored, and
nothing else; with room again, work goes on.
"""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from clew.core.double_text import DoubleText
from clew.core.ids import InboxId
from clew.core.inbox import NewInput
from clew.errors import StoreFull
from clew.store.opening import open_store
from tests.contract import acting, invariants
from tests.soak import Table

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from clew.store.contract import Store, Tx

K_OF_N = [(k, n) for n in range(1, 9) for k in range(1, n + 1)]
DISK = 4 * 1024 * 1024
#: Bytes of the disk that something else takes, so that it fills up at another place each time.
BALLASTS = range(0, 1_500_000, 37_000)
BIG = 8_000_000

Counts = tuple[int, int, int, int]


def run() -> Table:
    with tempfile.TemporaryDirectory(prefix="clew-soak-") as name:
        pages = asyncio.run(_all_k_of_n(Path(name)))
    rows: list[tuple[object, ...]] = [("page limit, job k of n", *pages)]
    with _small_disk() as disk:
        disks = (0, 0, 0, 0) if disk is None else asyncio.run(_all_ballasts(disk))
    title = "small disk" if disk else "small disk: left out, mounting is not allowed here"
    rows.append((title, *disks))
    return Table(
        title="Full disk",
        columns=("how", "rounds", "acknowledged", "refused", "acknowledged but missing, or extra"),
        rows=tuple(rows),
        passed=all(counts[3] == 0 for counts in (pages, disks)),
    )


def _message(name: str, size: int) -> NewInput:
    text = name + "x" * size
    return NewInput(id=InboxId(name), text=text, double_text=DoubleText.QUEUE)


async def _try(store: Store, names: Iterable[tuple[str, int]]) -> tuple[set[str], set[str]]:
    """Accept all at once, so that they share a commit; who was acknowledged, who was refused."""
    sent = [(name, store.write(acting.accept, _message(name, size))) for name, size in names]
    results = await asyncio.gather(*(call for _, call in sent), return_exceptions=True)
    refused: set[str] = set()
    for (name, _), result in zip(sent, results, strict=True):
        if isinstance(result, StoreFull):
            refused.add(name)
        elif isinstance(result, BaseException):
            raise result
    return {name for name, _ in sent} - refused, refused


def _stored(t: Tx) -> set[str]:
    assert invariants.check(t) == []
    return {row[0] for row in t.fetch_all("SELECT id FROM inbox")}


async def _all_k_of_n(folder: Path) -> Counts:
    async with await open_store("sqlite:///clew.db", home=folder) as store:
        await store.write(_limit_pages)
        acknowledged: set[str] = set()
        refused: set[str] = set()
        for k, n in K_OF_N:
            names = [(f"inb_{n}_{k}_{j}", BIG if j == k else 10) for j in range(1, n + 1)]
            done, failed = await _try(store, names)
            assert failed == {f"inb_{n}_{k}_{k}"}, "another job paid, or nobody did"
            acknowledged |= done
            refused |= failed
        wrong = await store.read(_stored) ^ acknowledged
    return len(K_OF_N), len(acknowledged), len(refused), len(wrong)


def _limit_pages(t: Tx) -> None:
    t.fetch_all("PRAGMA max_page_count = 1000")


@contextmanager
def _small_disk() -> Generator[Path | None]:
    with tempfile.TemporaryDirectory(prefix="clew-disk-") as name:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", name]
        try:
            subprocess.run(mount, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            yield None
            return
        try:
            yield Path(name)
        finally:
            subprocess.run(["umount", name], check=True)


async def _all_ballasts(disk: Path) -> Counts:
    rounds = acknowledged = refused = wrong = 0
    for ballast in BALLASTS:
        done, failed, bad = await _fill(disk, ballast)
        rounds += 1
        acknowledged, refused, wrong = acknowledged + done, refused + failed, wrong + bad
    return rounds, acknowledged, refused, wrong


def _clear(disk: Path, ballast: int) -> None:
    for file in disk.rglob("*"):
        if file.is_file():
            file.unlink()
    (disk / "ballast").write_bytes(bytes(ballast))


async def _fill(disk: Path, ballast: int) -> tuple[int, int, int]:
    _clear(disk, ballast)
    acknowledged: set[str] = set()
    refused: set[str] = set()
    async with await open_store("sqlite:///clew.db", home=disk) as store:
        wave = 0
        while not refused:
            wave += 1
            done, refused = await _try(store, [(f"inb_{wave}_{j}", 700 * j) for j in range(8)])
            acknowledged |= done
        (disk / "ballast").unlink()
        if ballast:
            acknowledged |= (await _try(store, [("inb_after", 10)]))[0]
    async with await open_store("sqlite:///clew.db", home=disk) as store:
        wrong = await store.read(_stored) ^ acknowledged
    return len(acknowledged), len(refused), len(wrong)
