"""The tools of files in turns: they run without a question, and each change is stored."""

from __future__ import annotations

import asyncio
import errno
import json
import stat
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partialmethod
from itertools import product as product_of
from typing import TYPE_CHECKING, Any

import pytest

from clew.agent.turn_context import clear_turn_context, enter_tool_call, set_turn_context
from clew.cli.entry_point import run_command
from clew.commands.runner import CommandRunner
from clew.config.settings import ApprovalsSettings
from clew.core.ids import ConversationId, IdGenerator, SessionId, TurnId
from clew.core.journal import CallKey
from clew.core.route import Route, local_route
from clew.core.scope import LOCAL, scope_of
from clew.core.tool_declaration import ToolDeclaration
from clew.engine.fsck import StoreChecker
from clew.errors import NotFound
from clew.features.files import changes, pruning, tools, writing
from clew.features.files.changes import FileChange, hash_content
from clew.features.files.settings import FilesSettings
from clew.features.files.undo import find_content_before
from clew.plugin import PathFact, ToolFacts, TurnContext
from clew.plugin.declarations import PeriodicWork
from clew.plugin.loading import get_features, load_settings_with_features
from clew.runtime import make_feature_context, open_application
from clew.sandbox.errors import FileRefused
from clew.sandbox.workspace import Workspace
from clew.testing import Calls, FakeProvider, ScriptedCall, Text, reply_in_sequence
from tests.features.killed_files import CHANGES, TOLD, is_expected, kill_in_a_change
from tests.integration.api_server import settings_for
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
    from pathlib import Path

    from clew.core.approval import Approval
    from clew.core.policy_rule import PolicyRule
    from clew.runtime import Application
    from clew.store.contract import Tx
    from clew.testing import Reply

TALK = local_route("talk")


def call(tool: str, **args: object) -> ScriptedCall:
    return ScriptedCall(tool, args)


@asynccontextmanager
async def open_product(
    home: Path, url: str, replies: Sequence[Reply], rules: Sequence[PolicyRule] = ()
) -> AsyncGenerator[tuple[Application, FakeProvider]]:
    with FakeProvider(reply_in_sequence(replies)) as provider:
        settings = settings_for(home, provider=provider, store_url=url)
        settings = replace(settings, approvals=ApprovalsSettings(rule=tuple(rules)))
        async with open_application(settings, role="test") as product:
            yield product, provider


async def run_calls(
    product: Application, provider: FakeProvider, *, route: Route = TALK
) -> list[str]:
    """The results of the calls of one turn, as the model got them."""
    before = len(provider.requests)
    accepted = await product.engine.submit("go on", target=route)
    done = await product.engine.wait_for_input(accepted)
    assert done.text == "done"
    assert len(provider.requests) > before
    messages: list[dict[str, Any]] = (provider.requests[-1].json or {})["messages"]
    last = max(n for n, one in enumerate(messages) if one["role"] == "user")
    return [one["content"] for one in messages[last:] if one["role"] == "tool"]


async def test_files_are_written_read_changed_and_found(tmp_path: Path, store_url: str) -> None:
    step = [call("write_file", path="notes/a.txt", content="one\ntwo\n")]
    more = [
        call("edit_file", path="notes/a.txt", old="two", new="2"),
        call("edit_file", path="notes/a.txt", old="one", new="1"),
        call("write_file", path="../a.txt", content="x"),
        call("write_file", path="notes", content="x"),
        call("edit_file", path="none.txt", old="a", new="b"),
        call("read_file", path="../../clew.db"),
    ]
    last = [
        call("read_file", path="notes/a.txt"),
        call("list_files", path="notes"),
        call("search_files", pattern="^1"),
        call("write_file", path="notes/a.txt", content="1\n2\n"),
        call("edit_file", path="notes/a.txt", old="gone", new="1"),
    ]
    replies = [Calls(tuple(step)), Calls(tuple(more)), Calls(tuple(last)), Text("done")]
    async with open_product(tmp_path, store_url, replies) as (product, provider):
        assert await run_calls(product, provider) == [
            "created 'notes/a.txt', now 8 bytes",
            "changed 'notes/a.txt', now 6 bytes",
            "changed 'notes/a.txt', now 4 bytes",
            "error: '../a.txt' is or contains the data of Clew: it cannot be used",
            "error: 'notes' is a folder, not a file",
            "error: there is no 'none.txt' in the workspace",
            "error: '../../clew.db' is or contains the data of Clew: it cannot be used",
            "1\n2",
            "notes/a.txt  4",
            "notes/a.txt:1: 1",
            "'notes/a.txt' is unchanged: it has this content already",
            "error: old is not in 'notes/a.txt', but new is: read the file again",
        ]
        assert (tmp_path / "work" / "local" / "notes" / "a.txt").read_bytes() == b"1\n2\n"
        conversation = await product.engine.resolve_name(TALK.key)
        found = await product.store.read(_read_changes)
        digests = [hash_content(one) for one in (b"one\ntwo\n", b"one\n2\n", b"1\n2\n")]
        assert [(row[0], row[1]) for row in found] == list(
            zip([None, *digests[:2]], digests, strict=True)
        )
        assert await product.store.read(changes.read_version, digests[1] or "") == b"one\n2\n"
        assert await _find_problems(product) == []
        await product.engine.delete_conversation(conversation, at_once=True)
        await product.engine.run_maintenance()
        assert await product.store.read(_read_changes) == []
        assert await product.store.read(_count_blobs) == 0


async def test_each_scope_has_files_of_its_own(tmp_path: Path) -> None:
    replies = [Calls((call("write_file", path="a", content="of 42"),)), Text("done")] * 2
    replies += [Calls((call("list_files"),)), Text("done")]
    async with open_product(tmp_path, "sqlite:///clew.db", replies) as (product, provider):
        for chat in ("42", "43"):
            route = Route(platform="telegram", kind="dm", chat=chat)
            told = await run_calls(product, provider, route=route)
            assert told == ["created 'a', now 5 bytes"]
        assert await run_calls(product, provider) == ["[nothing]"]


async def test_changes_of_one_response_are_made_in_their_order(
    tmp_path: Path, store_url: str
) -> None:
    words = [f"word{n}" for n in range(10, 22)]
    edits = [call("edit_file", path="a", old=word, new=word.upper()) for word in words]
    write = call("write_file", path="a", content=" ".join(words))
    read = call("read_file", path="a")
    replies = [Calls((write, read, *edits, read)), Text("done")]
    async with open_product(tmp_path, store_url, replies) as (product, provider):
        told = await run_calls(product, provider)
        assert (told[1], told[-1]) == (" ".join(words), " ".join(words).upper())
        assert (tmp_path / "work/local/a").read_text() == " ".join(words).upper()


@asynccontextmanager
async def entered_turn(home: Path, url: str) -> AsyncGenerator[tuple[Application, TurnContext]]:
    """A conversation, and the context of a turn of it."""
    async with open_product(home, url, [Text("done")]) as (product, provider):
        await run_calls(product, provider)
        conversation = await product.engine.resolve_name(TALK.key)
        ids = IdGenerator(lambda: 0)
        services = make_feature_context(product.settings, product.store, ids)
        context = TurnContext(
            conversation=conversation,
            session=SessionId("ses_1"),
            turn=TurnId("trn_1"),
            route=TALK.key,
            scope=LOCAL,
            sandbox_level="work",
            services=services,
        )
        set_turn_context(context)
        try:
            yield product, context
        finally:
            clear_turn_context()


class Killed(BaseException):
    """The process ended here."""


def write_and_die(space: Workspace, path: str, content: bytes, *, after: bool) -> None:
    if after:
        WRITE(space, path, content)
    raise Killed


WRITE = Workspace.write_file
RUNS: dict[str, Callable[[], Awaitable[str]]] = {
    "new\n": lambda: tools.write_file("a", "new\n"),
    "old, and new\n": lambda: tools.edit_file("a", "old", "old, and new"),
}


async def run_as(context: TurnContext, step: int, run: Callable[[], Awaitable[str]]) -> str:
    """Run a tool as a call of a step, again if there was one; its result, or what it refused."""
    with enter_tool_call(CallKey(turn_id=context.turn, step=step, call_id="c"), nullcontext):
        try:
            return await run()
        except Killed:
            return "killed"
        except FileRefused as error:
            return f"refused: {error}"


async def test_an_interrupted_change_is_made_once_or_again_to_the_same_effect(
    tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "work" / "local" / "a"
    async with entered_turn(tmp_path, store_url) as (product, context):
        step = 0
        for is_made, (made, run), between in product_of(
            (False, True), RUNS.items(), (None, "something else\n")
        ):
            step += 1
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("old\n")
            with monkeypatch.context() as patched:
                patched.setattr(
                    Workspace, "write_file", partialmethod(write_and_die, after=is_made)
                )
                assert await run_as(context, step, run) == "killed"
            assert file.read_text() == (made if is_made else "old\n")
            told = f"changed 'a', now {len(made)} bytes"
            if between is not None:
                file.write_text(made := between)
                told = (
                    "refused: 'a' was changed by something else while this call was "
                    "interrupted: read it again"
                )
            assert [await run_as(context, step, run) for _ in range(3)] == [told] * 3
            assert file.read_text() == made
        assert len(await product.store.read(_read_changes)) == step


@pytest.mark.parametrize(
    ("place", "nth"),
    [
        ("changes.store_change inside", 1),
        ("changes.store_change after", 2),
        ("file written, not in its place", 2),
        ("file in its place", 2),
    ],
)
def test_a_killed_gateway_leaves_no_file_half_changed_and_changes_none_twice(
    tmp_path: Path, store_url: str, place: str, nth: int
) -> None:
    outcome = kill_in_a_change(tmp_path, store_url, place, nth)
    assert outcome.told == TOLD
    assert outcome.changes == CHANGES
    assert is_expected(outcome)


async def test_a_change_that_fails_leaves_the_file_and_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "work" / "local" / "a"
    too_large = f"{writing.MAX_BYTES + 1:,} bytes; at most {writing.MAX_BYTES:,} "

    def fill_disk(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async with entered_turn(tmp_path, "sqlite:///clew.db") as (product, context):
        await run_as(context, 1, lambda: tools.write_file("a", "old\n"))
        file.chmod(0o751)
        (file.parent / "big").write_bytes(b"x" * (writing.MAX_BYTES + 1))
        with monkeypatch.context() as patched:
            patched.setattr("clew.sandbox.workspace.os.rename", fill_disk)
            told = await run_as(context, 2, lambda: tools.write_file("a", "new\n"))
        assert told == "refused: 'a' cannot be used: No space left on device"
        told = await run_as(context, 2, lambda: tools.write_file("a", "x" * 8_000_001))
        assert too_large in told
        assert too_large in await run_as(context, 2, lambda: tools.write_file("big", "small"))
        assert [one.name for one in sorted(file.parent.iterdir())] == ["a", "big"]
        assert file.read_text() == "old\n"
        assert len(await product.store.read(_read_changes)) == 1
        await run_as(context, 2, lambda: tools.edit_file("a", "old", "new"))
        assert file.read_text() == "new\n"
        assert stat.S_IMODE(file.stat().st_mode) == 0o751


def with_preview(facts: ToolFacts) -> ToolFacts:
    """The facts with the preview made, as for a question."""
    assert callable(facts.preview)
    return replace(facts, preview=facts.preview())


async def test_facts_name_the_file_and_show_the_whole_difference(tmp_path: Path) -> None:
    async with entered_turn(tmp_path, "sqlite:///clew.db"):
        root = tmp_path / "work" / "local"
        root.mkdir(parents=True)
        (root / "a").write_text("one\ntwo\n")
        (root / "out").symlink_to("/etc")
        found = with_preview(tools.make_write_facts({"path": "a", "old": "two", "new": "2"}))
        assert found == ToolFacts(
            paths=(PathFact(path=str(root / "a"), inside=True, writes=True),),
            size=6,
            preview="--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n",
        )
        new = with_preview(tools.make_write_facts({"path": "b", "content": "x\n" * 40_000}))
        assert isinstance(new.preview, str)
        assert new.preview.count("\n+x") == 40_000
        assert new.preview.startswith("--- /dev/null\n+++ b/b\n")
        for path, where, inside, untrusted in (
            ("a", f"{root}/a", True, False),
            ("downloads/x", f"{root}/downloads/x", True, True),
            ("out/passwd", "/etc/passwd", True, False),
            ("../x", "../x", True, False),
            ("/etc/passwd", "/etc/passwd", False, False),
        ):
            assert tools.make_read_facts({"path": path}) == ToolFacts(
                paths=(PathFact(path=where, inside=inside, leaves_out=True),),
                untrusted_result=untrusted,
            )
        (root / "downloads").mkdir()
        assert not tools.make_search_facts({"pattern": "x"}).untrusted_result
        (root / "downloads" / "x").touch()
        assert tools.make_search_facts({"pattern": "x"}).untrusted_result
        assert not tools.make_list_facts({}).untrusted_result


async def test_all_that_the_model_is_told_of_the_tools_is_short(tmp_path: Path) -> None:
    with FakeProvider(reply_in_sequence([Text("done")])) as provider:
        flags = {
            "model.name": "openai-chat:fake-model",
            "model.base_url": provider.openai_url,
            "model.api_key": "key",
            "web.search": "searxng",
            "web.search_url": provider.openai_url,
        }
        settings = load_settings_with_features(home=tmp_path, flags=flags, environ={})
        async with open_application(settings, role="test", own_only=True) as product:
            await run_calls(product, provider)
        body = provider.requests[-1].json or {}
    told = json.dumps([body["tools"], [m for m in body["messages"] if m["role"] != "user"]])
    declared = get_features(settings).values(ToolDeclaration)
    # There are neither skills nor MCP servers here.
    absent = {"load_skill", "mcp_find", "mcp_call", "mcp_read"}
    offered = {one["function"]["name"] for one in body["tools"]}
    assert offered | absent >= {one.name for one in declared}
    assert len(told) <= 10_000, len(told)


async def test_a_path_outside_of_the_workspace_is_used_once_a_person_allows_it(
    tmp_path: Path, store_url: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("one\n")
    calls = [
        call("read_file", path=str(outside / "a")),
        call("list_files", path=str(outside)),
        call("edit_file", path=str(outside / "a"), old="one", new="1"),
        call("edit_file", path=str(outside / "a"), old="1", new="2"),
    ]
    async with open_product(tmp_path / "home", store_url, [Calls(tuple(calls)), Text("done")]) as (
        product,
        provider,
    ):
        turn = asyncio.create_task(run_calls(product, provider))
        for _ in calls:
            question = await wait_until(lambda: find_question(product))
            assert question is not None
            assert str(outside) in question.args
            await product.engine.answer_approval(question.id, yes='"2"' not in question.args)
        assert await turn == [
            "one",
            f"{outside}/a  4",
            f"changed '{outside}/a', now 2 bytes",
            "not approved: the person said no",
        ]
    assert (outside / "a").read_text() == "1\n"


async def find_question(product: Application) -> Approval | None:
    try:
        conversation = await product.engine.resolve_name(TALK.key)
    except NotFound:
        return None
    return next(iter(await product.engine.list_approvals(conversation)), None)


@pytest.mark.both_databases
async def test_the_changes_of_the_last_turn_are_undone_and_nothing_else(
    tmp_path: Path, store_url: str
) -> None:
    first = [call("write_file", path="a", content="one"), call("write_file", path="b", content="b")]
    second = [
        call("edit_file", path="a", old="one", new="two"),
        call("write_file", path="new/c", content="c"),
        call("edit_file", path="a", old="two", new="three"),
        call("write_file", path="b", content="b2"),
    ]
    replies = [Calls(tuple(first)), Text("done"), Calls(tuple(second)), Text("done")]
    root = tmp_path / "work" / "local"
    async with open_product(tmp_path, store_url, replies) as (product, provider):
        runner = CommandRunner(product.engine, product.commands)

        async def undo(text: str = "/undo files") -> list[str]:
            reply = await runner.run_command(text, target=TALK, viewer=scope_of(TALK))
            return reply.text.splitlines()

        nothing = ["No file was changed in this conversation since the last undo."]
        assert await undo() == nothing
        await run_calls(product, provider)
        await run_calls(product, provider)
        (root / "b").write_text("by hand")
        assert await undo("/undo files 3") == [
            "/undo files takes no arguments: it undoes the last turn that changed files."
        ]
        assert await undo("/Undo  files ") == [
            "a: as before, 3 bytes",
            "new/c: removed, it was new",
            "b: left as it is, it was changed since",
        ]
        assert (root / "a").read_text() == "one"
        assert sorted(one.name for one in root.iterdir()) == ["a", "b", "new"]
        (root / "a").unlink()
        assert await undo() == [
            "a: is as it was before",
            "b: left as it is, it was changed since",
        ]
        assert (root / "b").read_text() == "by hand"
        assert await undo() == nothing
        assert await _find_problems(product) == []


async def test_no_file_grows_beyond_the_limit_of_its_workspace(
    tmp_path: Path, store_url: str
) -> None:
    half = "x" * 600_000
    calls = [
        call("write_file", path="a", content=half),
        call("write_file", path="b", content=half),
        call("edit_file", path="a", old="x" * 600_000, new="y" * 600_001),
        call("write_file", path="a", content="small"),
        call("write_file", path="b", content=half),
    ]
    more = Calls((call("write_file", path="b", content="tiny"),))
    replies = [Calls(tuple(calls)), Text("done"), more, Text("done")]
    with FakeProvider(reply_in_sequence(replies)) as provider:
        settings = settings_for(tmp_path, provider=provider, store_url=store_url)
        settings = replace(settings, sandbox=replace(settings.sandbox, disk=1))
        async with open_application(settings, role="test") as product:
            full = (
                "error: the workspace would hold more than 1 MB: remove files that are not needed"
            )
            told = await run_calls(product, provider)
            assert told[1] == full
            assert told[3:] == ["changed 'a', now 5 bytes", "created 'b', now 600,000 bytes"]
            root = tmp_path / "work" / "local"
            assert (root / "a").read_text() == "small"
            # What is put back has no room, until there is some.
            await run_calls(product, provider)
            (root / "c").write_bytes(b"c" * 900_000)
            runner = CommandRunner(product.engine, product.commands)
            reply = await runner.run_command("/undo files", target=TALK, viewer=scope_of(TALK))
            why = full.removeprefix("error: ")
            assert reply.text == f"b: left as it is: {why}, and undo again"
            (root / "c").unlink()
            reply = await runner.run_command("/undo files", target=TALK, viewer=scope_of(TALK))
            assert reply.text == "b: as before, 600,000 bytes"
            assert await _find_problems(product) == []


@pytest.mark.both_databases
async def test_old_versions_of_files_go_by_age_and_by_size(tmp_path: Path, store_url: str) -> None:
    day = 24 * 3600 * 1000
    steps = [
        Calls((call("write_file", path="a", content="one" * 400_000),)),
        Calls((call("write_file", path="a", content="two" * 400_000),)),
        Calls((call("write_file", path="b", content="one" * 400_000),)),
        Calls((call("write_file", path="a", content="six" * 400_000),)),
    ]
    replies = [reply for step in steps for reply in (step, Text("done"))]
    async with open_product(tmp_path, store_url, replies) as (product, provider):
        for _ in steps:
            await run_calls(product, provider)
        services = make_feature_context(product.settings, product.store, IdGenerator(lambda: 0))

        def grow_old(t: Tx, days: int) -> None:
            t.execute("UPDATE files_change SET created_at = created_at - $1", days * day)
            t.execute("UPDATE blob SET created_at = created_at - $1", days * day)

        assert await product.store.read(pruning.measure_versions) == 3_600_000
        assert await pruning.prune_versions(services, FilesSettings()) == 0
        # The oldest go, until one of their contents is needed by no later change.
        await product.store.write(grow_old, days=2)
        assert await pruning.prune_versions(services, FilesSettings(keep_size=3)) == 3
        kept = [hash_content(word * 400_000) for word in (b"one", b"two", b"six")]
        found = [await product.store.read(changes.read_version, one or "") for one in kept]
        assert [one is not None for one in found] == [False, True, True]
        assert await _find_problems(product) == []
        await product.store.write(grow_old, days=40)
        declared = get_features(product.settings).get(PeriodicWork)
        (work,) = (each.value for each in declared if each.value.name == "file versions")
        await work.run(services)
        assert await product.store.read(pruning.measure_versions) == 0
        assert await _find_problems(product) == []
        assert await product.store.read(_read_changes) == []


def test_the_tools_are_listed_with_their_effects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["--home", str(tmp_path), "tools", "--json"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    writer = {"name": "write_file", "effect": "idempotent", "feature": "files"}
    rules: dict[str, object] = {"every": None, "some": []}
    assert {**writer, "default": "by call", "untrusted": False, "rules": rules} in items
    assert run_command(["--home", str(tmp_path), "tools"]) == 0
    told = capsys.readouterr()
    assert "read_file     pure        by call  files" in told.out
    assert told.err == "commands run at the sandbox level work\n"
    assert "RULES" not in told.out
    written = "".join(
        f"[[approvals.rule]]\n{rule}\n"
        for rule in (
            'tool = "write_file"\nthen = "deny"',
            'tool = ["*_file"]\nthen = "ask"',
            'tool = "shell"\ncommand = ["git *"]\nthen = "allow"',
            'who = "chat:*"\nthen = "deny"',
        )
    )
    (tmp_path / "config.toml").write_text(written)
    assert run_command(["--home", str(tmp_path), "tools"]) == 0
    lines = capsys.readouterr().out.splitlines()
    shown = {line.split()[0]: " ".join(line.split("by call")[1].split()) for line in lines[1:]}
    assert shown["write_file"] == "denied (rule 1) files"
    assert shown["read_file"] == "asks (rule 2); some denied (rule 4) files"
    assert shown["shell"] == "some run (rule 3); some denied (rule 4) shell"
    assert run_command(["--home", str(tmp_path), "tools", "--json"]) == 0
    items = {one["name"]: one for one in json.loads(capsys.readouterr().out)["items"]}
    assert items["read_file"]["rules"] == {
        "every": {"rule": 2, "then": "ask"},
        "some": [{"rule": 4, "then": "deny"}],
    }


@pytest.mark.parametrize(
    ("made", "current", "before"),
    [
        (["-a", "ab", "bc"], "c", "-"),
        (["-a", "ab", "bc"], "b", "-"),
        (["ab", "bc"], "b", "a"),
        (["ab"], "a", "a"),
        (["ab", "ba"], "a", "a"),
        (["ab"], "x", None),
        (["ab"], "-", None),
        (["ab", "bc"], "a", None),
    ],
)
def test_the_content_before_is_found_though_the_last_change_was_interrupted(
    made: list[str], current: str, before: str | None
) -> None:
    """``-a``: a new file with the content ``a``."""
    changes_made = [
        FileChange(
            key=CallKey(turn_id=TurnId("t"), step=number, call_id="c"),
            conversation=ConversationId("c"),
            workspace="/w",
            path="a",
            before=None if one[0] == "-" else one[0],
            after=one[1],
        )
        for number, one in enumerate(made)
    ]
    found = find_content_before(changes_made, None if current == "-" else current)
    assert (None if found is None else found.content or "-") == before


async def _find_problems(product: Application) -> list[str]:
    settings = product.settings
    checker = StoreChecker(
        product.store,
        url=settings.store.url,
        home=settings.home,
        say=lambda _: None,
        processes=1,
        features=get_features(settings).schemas,
    )
    return [found.detail for found in (await checker.find_problems()).findings]


def _read_changes(t: Tx) -> list[tuple[str | None, str]]:
    return t.fetch_all("SELECT before_sha256, after_sha256 FROM files_change ORDER BY n")


def _count_blobs(t: Tx) -> int:
    return t.fetch_value("SELECT count(*) FROM blob")
