"""
Stores that earlier versions wrote open, are upgraded and pass fsck; a newer one is refused.

``golden_stores/NNNN.db.gz`` was written by the code of schema NNNN: two messages to the offline
model.
"""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clew.distribution import VERSION
from clew.errors import StoreUnusable
from clew.plugin.loading import load_named_features
from clew.store.migrate import load_migrations
from clew.store.opening import open_store
from tests.planting.planted import opened

if TYPE_CHECKING:
    from clew.store.contract import Tx

GOLDEN = sorted((Path(__file__).parent / "golden_stores").glob("*.db.gz"))
SAID = ["Hello, I am Ariadne.", "What did I say?"]
NEWEST = load_migrations("sqlite")[-1].number


def unpack(golden: Path, folder: Path) -> Path:
    file = folder / "clew.db"
    file.write_bytes(gzip.decompress(golden.read_bytes()))
    return file


def read_schema(file: Path) -> int:
    with closing(sqlite3.connect(file)) as database:
        return database.execute("SELECT max(number) FROM migration").fetchone()[0]


@pytest.mark.parametrize("golden", GOLDEN, ids=[file.name[:4] for file in GOLDEN])
async def test_an_earlier_store_opens_is_upgraded_and_keeps_what_was_said(
    golden: Path, tmp_path: Path
) -> None:
    file = unpack(golden, tmp_path)
    assert read_schema(file) == int(golden.name[:4])
    features = load_named_features(home=tmp_path, flags={}, environ={})
    url = f"sqlite:///{file}"
    async with await open_store(url, home=tmp_path, features=features.schemas) as store:
        texts = await store.read(read_said)
    assert texts == SAID
    assert read_schema(file) == NEWEST
    async with opened(url, tmp_path) as fsck:
        # The words of an index of long ago are looked up again, as a gateway does beside its work.
        await fsck.repair_problems()
        assert (await fsck.find_problems()).findings == ()


def read_said(t: Tx) -> list[str]:
    return t.fetch_column("SELECT text FROM entry WHERE role = 'user' ORDER BY n")


async def test_a_newer_store_is_refused_with_both_schemas_and_a_way_out(tmp_path: Path) -> None:
    file = unpack(GOLDEN[-1], tmp_path)
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("INSERT INTO migration VALUES (9999, 'later', 'x', 0)")
    before = file.read_bytes()
    with pytest.raises(StoreUnusable) as refused:
        await open_store(f"sqlite:///{file}", home=tmp_path)
    told = str(refused.value)
    for word in ("schema 9999", f"schema {NEWEST}", f"Clew {VERSION}", "upgrade Clew", "backup"):
        assert word in told
    assert file.read_bytes() == before
