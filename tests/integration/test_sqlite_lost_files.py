"""Files of a store that vanish while it is in use: nothing is lost in silence."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from clew.errors import StoreUnavailable, StoreUnusable
from clew.store.sqlite import open_sqlite
from tests.integration.sqlite_jobs import append, items, make_log

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.sqlite import SqliteStore


async def open_in(folder: Path) -> SqliteStore:
    return await open_sqlite(folder / "clew.db", run_dir=folder / "run")


def _replace(file: Path) -> None:
    shutil.copy(file, file.with_suffix(".copy"))
    file.with_suffix(".copy").replace(file)


def _delete(file: Path) -> None:
    file.unlink()


def _move(file: Path) -> None:
    file.rename(file.with_suffix(".moved"))


@pytest.mark.parametrize("ending", ["", "-wal", "-shm"])
@pytest.mark.parametrize("harm", [_replace, _delete, _move])
async def test_from_then_on_nothing_is_acknowledged_and_what_was_is_there_after_a_restart(
    tmp_path: Path, ending: str, harm: object
) -> None:
    lost = tmp_path / f"clew.db{ending}"
    async with await open_in(tmp_path) as store:
        await store.register_owner("own_1")
        await store.write(make_log)
        await store.write(append, "before")
        assert callable(harm)
        harm(lost)
        happened = "replaced" if harm is _replace else "deleted or moved"
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match=f"{lost.name} was {happened} while it was"):
                await store.write(append, "after")
        with pytest.raises(StoreUnavailable):
            await store.check_available()
        if harm is not _replace:
            # A second one would make files of its own, and two would write beside each other.
            with pytest.raises(StoreUnusable, match=r"is missing, but|was deleted while"):
                await open_in(tmp_path)
    if harm is _move and not ending:
        lost.with_suffix(".moved").rename(lost)
    if ending or harm is not _delete:
        async with await open_in(tmp_path) as store:
            assert await store.read(items) == ["before"]
            await store.write(append, "after")
