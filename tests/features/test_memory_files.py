"""Files of memory: what an operator writes into them becomes facts, and no change is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.scope import scope_of
from clew.features.memory import file_merging, file_sync
from tests.features.memory_world import ANN, HOME, open_memory

if TYPE_CHECKING:
    from pathlib import Path

    from tests.features.memory_world import MemoryWorld


async def _sync(world: MemoryWorld) -> None:
    await file_sync.sync_files(world.engine.feature_context, settled=0)


async def test_a_file_that_is_edited_adds_corrects_and_forgets_facts_of_its_own_scope(
    tmp_path: Path, store_url: str
) -> None:
    async with open_memory(tmp_path, store_url) as world:
        await world.command("/remember Ann likes tea.", ANN)
        for text in ("Bob likes tea.", "Bob lives in Rome.", "Bob has a cat."):
            await world.command(f"/remember {text}", HOME)
        await _sync(world)
        local = tmp_path / "memory" / "local.md"
        [other] = set(local.parent.iterdir()) - {local}
        assert "Ann likes tea." in other.read_text()
        assert other.stat().st_mode & 0o077 == 0
        lines = local.read_text().splitlines()
        assert [line.partition(" <!--")[0] for line in lines[2:]] == [
            "- Bob likes tea.", "- Bob lives in Rome.", "- Bob has a cat.",
        ]  # fmt: skip
        await _sync(world)
        assert local.read_text().splitlines() == lines, "nothing has changed"
        changed = [lines[0], lines[2].partition(" <!--")[0], lines[3].replace("Rome", "Oslo")]
        local.write_text("\n".join([*changed, "- Bob plays chess.", "- his password is hunter2"]))
        await file_sync.sync_files(world.engine.feature_context)
        assert len(local.read_text().splitlines()) == 5, "an editor may still be writing"
        await _sync(world)
        active = [one.text for one in await world.facts() if one.scope == "local" and one.text]
        assert active == ["Bob likes tea.", "Bob lives in Oslo.", "Bob plays chess."]
        assert "hunter2" not in local.read_text()
        assert "<!-- left out: this holds a password" in local.read_text()
        await world.check()


async def test_where_a_fact_and_its_line_were_both_changed_the_fact_stays_and_the_file_says_so(
    tmp_path: Path, store_url: str
) -> None:
    async with open_memory(tmp_path, store_url) as world:
        for name in ("Ann", "Bob", "Cem", "Dan"):
            await world.command(f"/remember {name} lives in Rome.", ANN)
        await _sync(world)
        [path] = (tmp_path / "memory").iterdir()
        edited = path.read_text().replace("Ann lives in Rome.", "Ann lives in Oslo.")
        without = [line for line in edited.splitlines() if "Bob" not in line and "Cem" not in line]
        for number, text in ((1, "Ann lives in Riga."), (2, "Bob lives in Riga.")):
            await world.command(f"/memory edit {number} {text}", ANN)
        path.write_text("\n".join(without))
        [(_, written)] = (await world.store.read(file_merging.list_scopes)).values()
        await _sync(world)
        told = path.read_text()
        assert (
            "<!-- fact 1 was changed meanwhile and stays; you wrote: Ann lives in Oslo. -->" in told
        )
        assert "<!-- fact 2 was changed meanwhile and stays -->" in told
        active = [one.text for one in await world.facts()]
        assert active == ["Ann lives in Riga.", "Bob lives in Riga.", None, "Dan lives in Rome."]
        # The gateway died after the merge and before it wrote the file: it is merged again.
        await world.store.write(
            file_merging.merge_file, scope_of(ANN), "\n".join(without), written, lambda: "mem_new"
        )
        assert [one.text for one in await world.facts()] == active
        for content in ("", "# Memory of somebody else\n", "# Memory of person:telegram:1\n"):
            await world.command("/remember Eve lives in Rome.", ANN)
            path.write_text(content)
            await _sync(world)
            assert len([one for one in await world.facts() if one.text]) == 4, content
        path.unlink()
        await _sync(world)
        assert "Dan lives in Rome." in path.read_text(), "a file that is gone forgets nothing"
        await world.check()
