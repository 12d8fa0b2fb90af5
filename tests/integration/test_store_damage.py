"""Damaged pages of the file: nothing is written any more, and nothing is repaired in it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import apsw
import pytest
from structlog.testing import capture_logs

from clew.cli import entry_point
from clew.errors import StoreDamaged
from clew.store.maintenance import update_index
from clew.store.opening import open_store
from clew.store.sqlite.driver import fetch_rows
from clew.store.transactions.context import read_head_context
from clew.testing import FakeProvider, Text
from tests.contract.search_log import Log
from tests.integration.api_server import always, running, settings_for
from tests.planting.planted import WELL, opened, tell
from tests.planting.story import Story

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.contract import Store

URL = "sqlite:///clew.db"
WELL_ID = Story(name=WELL).id


def ruin(home: Path, name: str) -> None:
    """Overwrite the first page of a table or an index."""
    path = home / "clew.db"
    with closing(apsw.Connection(str(path))) as connection:
        ((page,),) = fetch_rows(
            connection, "SELECT rootpage FROM sqlite_schema WHERE name = ?1", name
        )
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)


def content(home: Path) -> bytes:
    """All that is stored, but for the marks of who has it open."""
    return (home / "clew.db").read_bytes()[4096:]


async def read(store: Store) -> object:
    return await store.read(read_head_context, WELL_ID)


async def test_from_the_first_damaged_page_on_nothing_is_written_and_it_is_said_once(
    tmp_path: Path,
) -> None:
    await tell(URL, tmp_path, ())
    ruin(tmp_path, "entry")
    before = content(tmp_path)
    async with await open_store(URL, home=tmp_path) as store:
        await store.check_available()
        with capture_logs() as logs, pytest.raises(StoreDamaged, match="malformed"):
            await read(store)
        for job in (store.write(Story(name="another").tell), store.check_available(), read(store)):
            with pytest.raises(StoreDamaged):
                await job
        with pytest.raises(StoreDamaged, match="nothing more is written to it: stop everything"):
            await store.check_available()
    assert content(tmp_path) == before
    assert [log["event"] for log in logs].count("store_damaged") == 1


@pytest.mark.parametrize("part", ["entry", "sqlite_autoindex_entry_1", "turn_started"])
async def test_fsck_repairs_nothing_in_a_damaged_file_and_says_to_copy_it_first(
    tmp_path: Path, part: str
) -> None:
    await tell(URL, tmp_path, ())
    ruin(tmp_path, part)
    before = content(tmp_path)
    async with opened(URL, tmp_path) as fsck:
        report = await fsck.repair_problems()
    assert content(tmp_path) == before
    assert not report.is_clean
    assert {finding.check for finding in report.findings} == {"pages"}
    for finding in report.findings:
        assert finding.repair is None
        assert "copy its files to another disk, and restore a backup" in (finding.decide or "")


async def test_a_fault_beside_damaged_pages_is_reported_and_not_repaired(tmp_path: Path) -> None:
    await tell(URL, tmp_path, ())
    async with await open_store(URL, home=tmp_path) as store:
        await store.write(lambda t: t.execute("UPDATE lease SET last_seq = last_seq - 1"))
    ruin(tmp_path, "journal")
    before = content(tmp_path)
    async with opened(URL, tmp_path) as fsck:
        report = await fsck.repair_problems()
    assert {finding.check for finding in report.findings} == {"pages", "last-seq"}
    assert not any(finding.repaired for finding in report.findings)
    assert "call-once" in report.unchecked
    assert content(tmp_path) == before


async def test_with_a_damaged_search_index_conversations_continue_and_fsck_rebuilds_it(
    tmp_path: Path,
) -> None:
    await tell(URL, tmp_path, ())
    async with await open_store(URL, home=tmp_path) as store:
        await update_index(store)
        log = await Log.open(store)
        await log.say("a word")
        await update_index(store)
    ruin(tmp_path, "search_index_data")
    async with await open_store(URL, home=tmp_path) as store:
        await store.write(Story(name="another").tell)
        await read(store)
    async with opened(URL, tmp_path) as fsck:
        report = await fsck.find_problems()
        assert [finding.check for finding in report.findings] == ["search-index"]
        repaired = await fsck.repair_problems()
        assert repaired.is_clean
        assert [finding.repaired for finding in repaired.findings] == [True]
        assert (await fsck.find_problems()).findings == ()
    async with await open_store(URL, home=tmp_path) as store:
        found = Log(store, log.lease, log.session, log.scope)
        assert await found.find("word") == [1]


@pytest.mark.unequal("what was stored cannot be read any more")
async def test_a_gateway_says_that_its_store_is_damaged(tmp_path: Path) -> None:
    with FakeProvider(always(Text("short"))) as provider:
        async with running(settings_for(tmp_path, provider=provider)) as server:
            assert (await server.say("hello")).status_code == 200
        ruin(tmp_path, "entry")
        async with running(settings_for(tmp_path, provider=provider)) as server:
            listed = await server.http.get("/api/conversations/talk/entries")
            assert listed.status_code == 500
            for _ in range(2):
                refused = await server.say("hello again")
                assert (refused.status_code, refused.json()["error"]["code"]) == (
                    500,
                    "store_damaged",
                )
                assert "restore a backup" in refused.json()["error"]["message"]
            assert (await server.http.get("/readyz")).status_code == 503
            assert (await server.http.get("/healthz")).status_code == 200


def test_the_command_exits_with_1_and_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry_point.run_command(["--home", str(tmp_path), "fsck"]) == 0
    assert "nothing is stored yet" in capsys.readouterr().err
    assert entry_point.run_command(["--home", str(tmp_path), "sessions", "list"]) == 0
    assert entry_point.run_command(["--home", str(tmp_path), "fsck"]) == 0
    assert "0 entries in 0 conversations" in capsys.readouterr().err
    ruin(tmp_path, "entry")
    assert entry_point.run_command(["--home", str(tmp_path), "fsck", "--repair"]) == 1
    told = capsys.readouterr().out
    assert told.startswith("pages ")
    assert "to decide: stop everything that uses the store, copy its files" in told
