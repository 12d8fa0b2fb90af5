"""Everything that can be wrong with a store is found, and repaired where that is sure."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from clew.core.entry import chain_hash
from clew.store.checks.registry import CHECKS
from clew.store.opening import open_store
from tests.planting.faults import EVERY, REPAIRABLE, UNDECIDED
from tests.planting.harm import harm
from tests.planting.planted import expected, found, opened, plant, tell
from tests.planting.story import Story

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from clew.store.contract import Row, Tx


def test_there_are_40_faults_and_one_at_least_for_each_check() -> None:
    tried = {check for fault in EVERY for check in fault.finds}
    assert len(EVERY) >= 40
    assert tried == {check.name for check in CHECKS}
    repaired = {check for fault in REPAIRABLE for check in fault.finds}
    assert repaired == {check.name for check in CHECKS if check.repair is not None}


async def test_each_repairable_fault_is_found_reported_and_repaired(
    store_url: str, tmp_path: Path
) -> None:
    await tell(store_url, tmp_path, REPAIRABLE)
    async with opened(store_url, tmp_path) as fsck:
        assert (await fsck.find_problems()).findings == ()
    plant(store_url, tmp_path, REPAIRABLE)
    async with opened(store_url, tmp_path) as fsck:
        before = await fsck.find_problems()
        assert found(before, REPAIRABLE) == expected(REPAIRABLE)
        assert not before.is_clean
        assert all(f.repair and not f.decide and not f.repaired for f in before.findings)
        after = await fsck.repair_problems()
        assert after.is_clean
        assert {(f.check, f.detail, f.repair) for f in before.findings} <= {
            (f.check, f.detail, f.repair) for f in after.findings if f.repaired
        }
        assert (await fsck.find_problems()).findings == ()


async def test_a_fault_that_needs_a_decision_is_reported_and_not_repaired(
    store_url: str, tmp_path: Path
) -> None:
    await tell(store_url, tmp_path, UNDECIDED)
    plant(store_url, tmp_path, UNDECIDED)
    async with opened(store_url, tmp_path) as fsck:
        before = await _rows(store_url, tmp_path)
        report = await fsck.repair_problems()
        assert found(report, UNDECIDED) == expected(UNDECIDED)
        assert not report.is_clean
        assert all(f.decide and not f.repair for f in report.findings)
        assert await _rows(store_url, tmp_path) == before


async def _rows(url: str, home: Path) -> dict[str, list[Row]]:
    def job(t: Tx) -> dict[str, list[Row]]:
        tables = ("session", "entry", "turn", "inbox", "journal", "delivery", "lease", "head")
        return {table: sorted(t.fetch_all(f"SELECT * FROM {table}"), key=repr) for table in tables}

    async with await open_store(url, home=home) as store:
        return await store.read(job)


async def test_an_entry_with_a_recomputed_hash_is_exposed_by_the_next_one(
    store_url: str, tmp_path: Path
) -> None:
    await tell(store_url, tmp_path, ())

    def forged(t: Tx) -> bytes:
        row = t.fetch_one(
            """
            SELECT conversation_id, seq, id, session_id, turn_id, kind, role, 'never said', calls,
                   answers, format, message, created_at, prev_hash
            FROM entry WHERE seq = 4
            """
        )
        assert row is not None
        return chain_hash(bytes(row[13]), row[:13])

    async with await open_store(store_url, home=tmp_path) as store:
        digest = (await store.read(forged)).hex()
    literal = f"X'{digest}'" if store_url.startswith("sqlite") else f"'\\x{digest}'"
    change = f"UPDATE entry SET text = 'never said', hash = {literal} WHERE seq = 4"
    harm(store_url, tmp_path, [change])
    async with opened(store_url, tmp_path) as fsck:
        (finding,) = (await fsck.find_problems()).findings
    assert (finding.check, finding.seq) == ("hash-chain", 5)
    assert "was replaced" in finding.detail


async def test_a_turn_under_way_is_no_fault_and_a_repair_lets_it_be(
    store_url: str, tmp_path: Path
) -> None:
    async with (
        await open_store(store_url, home=tmp_path) as store,
        opened(store_url, tmp_path) as fsck,
    ):

        async def live(name: str) -> None:
            story = Story(name=name)
            for step in story.steps():
                await store.write(step)
            await store.write(story.mark_deleted)
            await store.write(story.delete)

        async with asyncio.TaskGroup() as tasks:
            living = [tasks.create_task(live(f"live_{n}")) for n in range(6)]
            looks = 0
            while not all(task.done() for task in living) or not looks:
                assert (await fsck.repair_problems()).findings == ()
                looks += 1


async def test_a_long_log_is_walked_through_in_stretches(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.engine.fsck.RANGE_SIZE", 7)
    await _walk(store_url, tmp_path, processes=1)


async def test_several_processes_walk_through_a_long_log_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.engine.fsck.RANGE_SIZE", 15)
    monkeypatch.setattr("clew.engine.fsck.PARALLEL_MIN_ENTRIES", 1)
    await _walk("sqlite:///clew.db", tmp_path, processes=2)


async def _walk(url: str, home: Path, *, processes: int) -> None:
    changed = [fault for fault in UNDECIDED if fault.name == "changed"]
    await tell(url, home, changed)
    plant(url, home, changed)
    async with opened(url, home, processes=processes) as fsck:
        (finding,) = (await fsck.find_problems()).findings
    assert (finding.check, finding.conversation, finding.seq) == ("hash-chain", "cnv_changed", 4)
