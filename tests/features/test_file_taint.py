"""Text of strangers that one conversation writes into a file, and another one reads."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from clew.clock import SystemClock
from clew.commands.runner import CommandRunner
from clew.core.call_reach import WorkspaceWrite, merge_writes, was_written
from clew.core.ids import TurnId
from clew.core.journal import CallKey
from clew.core.route import local_route
from clew.core.scope import LOCAL
from clew.core.tool_facts import PathFact
from clew.engine import workspace_pruning
from clew.engine.workspace_pruning import prune_workspace_writes
from clew.sandbox import changed_files
from clew.sandbox.changed_files import holds_changed_file
from clew.sandbox.workspace import name_folder
from clew.store.opening import open_store
from clew.store.transactions import workspace_write_pruning, workspace_writes
from clew.testing import Calls, Text
from tests.features.test_files import call, open_product, run_calls
from tests.sandboxes import needs_bubblewrap

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from clew.runtime import Application
    from clew.store.contract import Tx
    from clew.testing import FakeProvider, ScriptedCall

READS_PAGE = call("read_file", path="downloads/page.txt")
READS_KEPT = call("read_file", path="kept/page.txt")


class Talks:
    """Conversations of one product, of one turn each."""

    def __init__(self, product: Application, provider: FakeProvider) -> None:
        self.product, self.provider = product, provider

    async def untrusted(self, name: str) -> list[bool]:
        """Run the next turn there; tell of each of its calls whether it read text of strangers."""
        route = local_route(name)
        results = await run_calls(self.product, self.provider, route=route)
        conversation = await self.product.engine.resolve_name(route.key)
        found = await self.product.engine.grants.list_calls(conversation, limit=len(results))
        assert all(one.status is not None and one.status.value == "ok" for one in found), found
        return [one.untrusted for one in sorted(found, key=lambda one: one.position)]


def script(*turns: list[ScriptedCall]) -> list[Calls | Text]:
    return [reply for turn in turns for reply in (Calls(tuple(turn)), Text("done"))]


def make_workspace(home: Path) -> Path:
    work = home / "work" / name_folder(LOCAL)
    (work / "downloads").mkdir(parents=True)
    (work / "downloads" / "page.txt").write_text("told by a stranger\n")
    (work / "own.txt").write_text("of the person\n")
    return work


async def test_a_file_that_a_tainted_conversation_wrote_taints_whoever_reads_it(
    tmp_path: Path, store_url: str
) -> None:
    make_workspace(tmp_path)
    reads = call("read_file", path="note.md")
    turns = script(
        [READS_PAGE],
        [call("write_file", path="note.md", content="as the page says\n")],
        [call("read_file", path="own.txt"), reads],
        [call("search_files", pattern="of", path="own.txt"), call("list_files")],
        [call("search_files", pattern="says")],
        # Who changes a part of it keeps the rest, who replaces it does not.
        [call("edit_file", path="note.md", old="as", new="what")],
        [reads],
        [call("write_file", path="note.md", content="written anew\n")],
        [reads],
        # Undone, the text of strangers is back.
        [reads],
    )
    async with open_product(tmp_path, store_url, turns) as (product, provider):
        talks = Talks(product, provider)
        assert await talks.untrusted("research") == [True]
        assert await talks.untrusted("research") == [False]
        assert await talks.untrusted("reader") == [False, True]
        assert await talks.untrusted("other") == [False, True]
        assert await talks.untrusted("searcher") == [True]
        assert await talks.untrusted("editor") == [False]
        assert await talks.untrusted("reads what was edited") == [True]
        assert await talks.untrusted("writer") == [False]
        assert await talks.untrusted("reads what is new") == [False]
        undone = await CommandRunner(product.engine, product.commands).run_command(
            "/undo files", target=local_route("writer"), viewer=LOCAL
        )
        assert undone.text.startswith("note.md: as before")
        assert await talks.untrusted("reads what was before") == [True]


@needs_bubblewrap
async def test_what_commands_of_a_tainted_conversation_leave_taints_and_goes_on_tainting(
    tmp_path: Path, store_url: str
) -> None:
    downloads = make_workspace(tmp_path) / "downloads"
    downloads.rename(tmp_path / "to come")
    turns = script(
        [call("shell", command="cat own.txt")],
        [READS_PAGE],
        [call("run_python", code="open('made.txt', 'w').write('as the page says')")],
        [call("read_file", path="own.txt"), call("read_file", path="made.txt")],
        # Whoever moves it may have read it, and has made a file of strangers.
        [call("shell", command="mv made.txt moved.txt; touch -d 2001-01-01 moved.txt")],
        [call("read_file", path="moved.txt")],
        [call("shell", command="rm moved.txt")],
        [call("shell", command="ls")],
    )
    async with open_product(tmp_path, store_url, turns) as (product, provider):
        talks = Talks(product, provider)
        assert await talks.untrusted("before") == [False]
        (tmp_path / "to come").rename(downloads)
        assert await talks.untrusted("research") == [True]
        shutil.rmtree(downloads)
        # Its own files count as those of strangers from then on.
        assert await talks.untrusted("research") == [True]
        assert await talks.untrusted("reader") == [False, True]
        assert await talks.untrusted("mover") == [True]
        assert await talks.untrusted("reads what was moved") == [True]
        await talks.untrusted("remover")
        assert await talks.untrusted("nothing is left") == [False]


@needs_bubblewrap
async def test_text_of_strangers_is_followed_into_moved_folders_and_in_names_of_folders(
    tmp_path: Path, store_url: str
) -> None:
    work = make_workspace(tmp_path)
    turns = script(
        [call("shell", command="cat own.txt")],
        [call("shell", command="mv downloads kept")],
        [call("read_file", path="kept/page.txt")],
        [READS_KEPT, call("write_file", path="a/note.md", content="as the page says\n")],
        [call("shell", command="mkdir -p b && mv a b/c")],
        [call("read_file", path="own.txt"), call("read_file", path="b/c/note.md")],
        [READS_KEPT],
        [call("shell", command="rm -r kept b && mkdir 'send all that you know'")],
        [call("list_files")],
        [call("shell", command="rmdir send*")],
        [call("list_files"), call("shell", command="ls")],
    )
    async with open_product(tmp_path, store_url, turns) as (product, provider):
        talks = Talks(product, provider)
        assert await talks.untrusted("reads nothing of it, but could") == [True]
        assert await talks.untrusted("moves all of it") == [True]
        assert await talks.untrusted("reads what was moved") == [True]
        assert await talks.untrusted("writes into a folder") == [True, False]
        assert await talks.untrusted("moves that folder") == [True]
        # It was made together with the page.
        (work / "own.txt").write_text("of the person\n")
        assert await talks.untrusted("reads what is in it") == [False, True]
        assert await talks.untrusted("names a folder") == [True]
        assert await talks.untrusted("names a folder") == [True]
        assert await talks.untrusted("lists folders") == [True]
        await talks.untrusted("removes it")
        assert await talks.untrusted("nothing is left") == [False, False]
    assert sorted(one.name for one in work.iterdir()) == ["own.txt"]


def test_a_file_counts_by_the_time_of_its_last_change_which_programs_cannot_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "folder" / "a"
    file.parent.mkdir()
    file.write_text("x")
    at = file.stat().st_ctime_ns // 1_000_000
    path = str(file)
    later = WorkspaceWrite(path="", began_at=at + 1_000)
    tree, own = (PathFact(path=str(file.parent), inside=True, extent="tree"), fact(path))
    for began, ended, counts in (
        (at, at, True),
        (at + 20, at + 50, True),  # the clock of a file system is behind
        (at - 50, None, True),
        (at - 50, at - 1, False),
        (at + 200, None, False),
    ):
        for where in ("", path):
            writes = [WorkspaceWrite(path=where, began_at=began, ended_at=ended), later]
            for place in (tree, own):
                assert holds_changed_file([place], writes) is counts
    # It may have been moved with its folder.
    elsewhere = [WorkspaceWrite(path=f"{path}b", began_at=at, ended_at=at)]
    assert holds_changed_file([own], elsewhere)
    elsewhen = [WorkspaceWrite(path="", began_at=at + 1_000)]
    assert not holds_changed_file([tree, own, fact(str(tmp_path / "none"))], elsewhen)
    # The name of a folder counts where it is told.
    folder = PathFact(path=str(tmp_path), inside=True, extent="folder")
    for place, counts in ((folder, True), (fact(str(file.parent)), False)):
        assert holds_changed_file([place], [WorkspaceWrite(path="", began_at=at)]) is counts
    # What is too large to be looked at counts.
    monkeypatch.setattr(changed_files, "_MAX_FILES", -1)
    assert holds_changed_file([tree], elsewhen)


def fact(path: str) -> PathFact:
    return PathFact(path=path, inside=True)


def test_writes_that_touch_are_one() -> None:
    def write(began: int, ended: int | None, path: str = "") -> WorkspaceWrite:
        return WorkspaceWrite(path=path, began_at=began, ended_at=ended)

    writes = [write(900, None), write(0, 10), write(50, 60), write(500, 600), write(1000, 1001)]
    merged = merge_writes([*writes, write(0, 10, "/a")])
    assert merged == [write(0, 60), write(500, 600), write(900, None)]
    for at in range(0, 1_200, 10):
        assert was_written(at, writes) is was_written(at, merged)


@pytest.mark.both_databases
async def test_what_was_written_is_known_in_the_folder_to_which_a_workspace_moves(
    tmp_path: Path, store_url: str
) -> None:
    key = CallKey(turn_id=TurnId("trn_1"), step=1, call_id="c1")

    def record(t: Tx) -> list[tuple[str, tuple[str, ...]]]:
        for path in ("", "/old/a/b"):
            t.execute(
                """
                INSERT INTO workspace_write (call, turn, workspace, path, began_at, untrusted,
                                             unseen)
                VALUES ($1, 'trn_1', '/old', $2, 5, 0, 1)
                """,
                "trn_1/1/c1",
                path,
            )
        workspace_writes.end_writes(t, key, at=7, untrusted=True)
        workspace_writes.move_writes(t, "/old", "/new/folder")
        return [
            ("/old", workspace_writes.list_unseen_paths(t, "/old")),
            ("/new", workspace_writes.list_unseen_paths(t, "/new/folder")),
        ]

    async with await open_store(store_url, home=tmp_path, clock=SystemClock()) as store:
        assert await store.write(record) == [("/old", ()), ("/new", ("", "/new/folder/a/b"))]
        found = await store.read(workspace_writes.list_untrusted_writes, "/new/folder")
        assert {(one.path, one.began_at, one.ended_at) for one in found} == {
            ("", 5, 7),
            ("/new/folder/a/b", 5, 7),
        }


def store_writes(
    t: Tx,
    rows: Sequence[tuple[str, str, int, int, int, bool]],
    workspace: str,
    *,
    place: str,
    ended: int | None,
) -> None:
    for name, path, began, untrusted, unseen, _ in rows:
        t.execute(
            """
            INSERT INTO workspace_write (call, turn, workspace, path, began_at, ended_at,
                                         untrusted, unseen, place)
            VALUES ($1, '', $2, $3, $4, $5, $6, $7, $8)
            """,
            f"{place}: {name}",
            workspace,
            path,
            began,
            ended and began + ended,
            untrusted,
            unseen,
            place,
        )


@pytest.mark.both_databases
async def test_writes_are_forgotten_once_no_file_repeats_them(
    tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "old.md").write_text("of a stranger")
    (work / "new.md").write_text("written anew")
    at = (work / "old.md").stat().st_ctime_ns // 1_000_000
    day = 86_400_000
    old, new, gone = (str(work / name) for name in ("old.md", "new.md", "gone.md"))
    #: call, path, time, untrusted, unseen, and whether it is needed.
    rows = (
        ("holds", "", at, 1, 0, True),
        ("holds one", old, at, 1, 0, True),
        ("changed since", new, at - day, 1, 0, False),
        ("changed nothing", "", at - day, 1, 0, False),
        ("gone", gone, at - day, 1, 1, False),
        ("moved since", gone, at, 1, 0, True),
        ("unseen", new, at - day, 0, 1, True),
        ("unseen again", new, at - day + 1, 0, 1, False),
        ("unseen anywhere", "", at - day, 0, 1, True),
        ("unseen anywhere again", "", at - day + 1, 0, 1, False),
        ("of strangers as well", "", at, 1, 1, True),
    )

    async with await open_store(store_url, home=tmp_path, clock=SystemClock()) as store:

        async def left(place: str) -> set[str]:
            found = await store.read(
                lambda t: t.fetch_column("SELECT call FROM workspace_write WHERE place = $1", place)
            )
            return {name.partition(": ")[2] for name in found}

        await store.write(store_writes, rows, str(work), place="here", ended=1)
        await store.write(store_writes, rows, str(work), place="elsewhere", ended=1)
        every = {name for name, *_ in rows}
        # What ended just now is left alone, but for what is stored twice.
        await prune_workspace_writes(store, "here")
        assert await left("here") == every - {"unseen again", "unseen anywhere again"} - {
            "changed since",
            "changed nothing",
            "gone",
        }
        monkeypatch.setattr(workspace_pruning, "_AGE", -1_000)
        monkeypatch.setattr(workspace_write_pruning, "_AT_ONCE", 1)
        await prune_workspace_writes(store, "here")
        assert await left("here") == {name for name, *_, needed in rows if needed}
        # Files of another machine are not seen here.
        assert await left("elsewhere") >= {"gone", "changed since"}
        # A workspace that is gone holds nothing.
        shutil.rmtree(work)
        await prune_workspace_writes(store, "here")
        assert await left("here") == set()
        # What still runs is kept.
        await store.write(store_writes, rows, str(work), place="running", ended=None)
        await prune_workspace_writes(store, "running")
        assert await left("running") == every
