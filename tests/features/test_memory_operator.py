"""What an operator does with facts on the command line, and what ``clew fsck`` says of them."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from clew.cli.entry_point import run_command
from clew.core.scope import LOCAL
from clew.features.memory import facts, proposals, writing
from clew.features.memory.facts import FactWriter
from tests.features.memory_world import HOME, find_wrong, open_memory

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from clew.store.contract import Tx
    from tests.features.memory_world import MemoryWorld

SQLITE = "sqlite:///clew.db"


def run(home: Path, capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> str:
    assert run_command(["--home", str(home), "memory", *args]) == code
    return capsys.readouterr().out


async def propose(world: MemoryWorld, *texts: str) -> None:
    """Say something, and have facts be found in it."""
    await world.say("hello")
    source = writing.FactSource(conversation=await world.conversation(HOME), seq=1, hash="")
    for text in texts:
        name, writer = f"mem_{len(text)}", FactWriter.AGENT
        given = writing.NewFact(id=name, scope=LOCAL, text=text, written_by=writer, source=source)
        assert await world.store.write(proposals.propose, given)


def test_facts_are_added_corrected_exported_imported_and_forgotten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, capsys, "add", "Ann lives in Rome.")
    run(tmp_path, capsys, "add", "--pin", "Bob likes tea.")
    run(tmp_path, capsys, "edit", "1", "Ann lives in Oslo.")
    assert "written by a person" in run(tmp_path, capsys, "show", "1")
    written = run(tmp_path, capsys, "export")
    file = tmp_path / "MEMORY.md"
    file.write_text(written.replace("tea", "coffee") + "- Cem sails.\n- the password is hunter2\n")
    said = run(tmp_path, capsys, "import", str(file))
    assert said == "1 added, 1 changed, 1 known already\n"
    again = run(tmp_path, capsys, "import", str(file))
    assert again == "0 added, 0 changed, 3 known already\n"
    listed = json.loads(run(tmp_path, capsys, "list", "--json"))["items"]
    assert [(one["text"], one["pinned"]) for one in listed] == [
        ("Ann lives in Oslo.", False), ("Bob likes coffee.", True), ("Cem sails.", False),
    ]  # fmt: skip
    assert run(tmp_path, capsys, "forget", "1").startswith("Fact 1 is forgotten.")
    run(tmp_path, capsys, "forget", "7", code=2)
    left = run(tmp_path, capsys, "export")
    assert "Oslo" not in left
    assert "Cem sails." in left
    assert run(tmp_path, capsys, "list", "--scopes").split() == ["SCOPE", "FACTS", "local", "2"]


def test_what_is_proposed_is_listed_and_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def prepare() -> None:
        async with open_memory(tmp_path, SQLITE) as world:
            await propose(world, "Ann sails.", "Ann has a cat.", "Ann lives in Rome.")

    asyncio.run(prepare())
    assert "Ann has a cat." in run(tmp_path, capsys, "proposed")
    run(tmp_path, capsys, "proposed", "keep", "2", code=2)
    run(tmp_path, capsys, "proposed", "accept", "9", code=2)
    assert len(json.loads(run(tmp_path, capsys, "proposed", "--json"))["items"]) == 3
    said = run(tmp_path, capsys, "proposed", "accept", "2")
    assert said == "Remembered as 1. Ann has a cat.\n2 declined.\n"
    assert run(tmp_path, capsys, "proposed") == ""


async def test_fsck_names_facts_without_a_version_a_source_or_with_a_forgotten_text(
    tmp_path: Path, store_url: str
) -> None:
    async with open_memory(tmp_path, store_url) as world:
        for text in ("Ann sails.", "Ann has a cat.", "Ann lives in Rome."):
            await world.call("remember", fact=text)
        await world.command("/forget 2")
        await world.settle()
        await propose(world, "Ann plays chess.")
        await world.check()
        await world.store.write(_harm)
        found = {check.name for check, _ in await world.store.read(find_wrong)}
        assert found == {
            *("memory-versions", "memory-forgotten", "memory-sources", "memory-proposals"),
        }


def _harm(t: Tx) -> None:
    [first, _] = facts.list_active(t, LOCAL)
    t.execute("DELETE FROM memory_change WHERE version = 1")
    t.execute("UPDATE memory_fact SET text = 'Ann has a cat.' WHERE state = 'forgotten'")
    t.execute("UPDATE memory_fact SET seq = 999 WHERE id = $1", first.id)
    t.execute("UPDATE memory_proposal SET text = NULL WHERE state = 'proposed'")
