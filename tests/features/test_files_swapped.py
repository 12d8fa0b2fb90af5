"""A file that changes between the question about a call and the call."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from clew.testing import Calls, Text
from tests.features.test_files import call, find_question, open_product, run_calls
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path


async def test_what_was_swapped_since_the_question_is_neither_read_nor_written(
    tmp_path: Path, store_url: str
) -> None:
    outside = tmp_path / "outside"
    for name in ("read", "folder", "changed", "secret"):
        (outside / name).mkdir(parents=True)
        (outside / name / "a").write_text(f"{name}\n")
    paths = {name: outside / name / "a" for name in ("read", "folder", "changed")}
    calls = [
        call("read_file", path=str(paths["read"])),
        call("search_files", pattern=".", path=str(outside / "folder")),
        call("write_file", path=str(paths["changed"]), content="new\n"),
    ]

    def swap() -> None:
        paths["read"].unlink()
        paths["read"].symlink_to(outside / "secret" / "a")
        (outside / "folder").rename(outside / "away")
        (outside / "folder").symlink_to(outside / "secret")
        paths["changed"].write_text("changed meanwhile\n")

    async with open_product(tmp_path / "home", store_url, [Calls(tuple(calls)), Text("done")]) as (
        product,
        provider,
    ):
        turn = asyncio.create_task(run_calls(product, provider))
        for asked in range(len(calls)):
            question = await wait_until(lambda: find_question(product))
            assert question is not None
            if not asked:
                swap()
            elif question.preview is not None:
                paths["changed"].write_text("and again\n")
            await product.engine.answer_approval(question.id, yes=True)
        read, searched, written = await turn
    for told in (read, searched):
        assert "goes over a symbolic link" in told
        assert str(outside / "secret") in told
    assert written.startswith("error: it was not run: what it would change is not what")
    assert paths["changed"].read_text() == "and again\n"
