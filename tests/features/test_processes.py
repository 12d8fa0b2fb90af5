"""Processes: commands that go on without a call, and how their ends are told."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from clew.agent.known_secrets import register_secrets
from clew.core import completion
from clew.core.journal import CallKey
from clew.core.text import REDACTED
from clew.features.shell import processes, supervision, watcher
from clew.features.shell.processes import ProcessState
from clew.features.shell.watcher import ProcessWatcher
from clew.sandbox.errors import SandboxError
from clew.sandbox.process_folder import Life, ProcessFolder
from tests.features.killed_commands import find_processes
from tests.features.process_world import CHAT, answer_with, open_processes, shell_call, told
from tests.sandboxes import needs_bubblewrap
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.contract import Tx

pytestmark = needs_bubblewrap


@pytest.fixture(autouse=True)
def short_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "COLLECT_FOR", timedelta(milliseconds=200))


def test_a_part_of_an_output_from_any_byte_holds_no_piece_of_a_secret(tmp_path: Path) -> None:
    secret = "kept-närrisch-0123456789"
    register_secrets([secret])
    output = f"one\r\ntwo \x1b[1m{secret}\x1b[0m ü\nend\n".encode()
    # As it is kept: in files that may end anywhere.
    for begin, size in ((0, 12), (12, 12), (24, 99)):
        (tmp_path / f"out.{begin}").write_bytes(output[begin : begin + size])
    folder, told = ProcessFolder(tmp_path), ""
    for length in (1, 7, 40):
        told, at = "", 0
        while at < len(output):
            part = folder.read_range(at, length, margin=supervision.MARGIN)
            told += supervision.decode_part(part)
            at = part.start + len(part.data)
        for n in range(len(secret) - 2):
            assert secret[n : n + 3] not in told
        assert "ü\nend\n" in told
    gap = replace(folder.read_range(9, 5, margin=4), size=0)
    assert (gap.before, gap.data, gap.after) == (output[5:9], output[9:14], output[14:18])


async def test_each_end_in_the_background_is_told_once_in_its_own_words(
    tmp_path: Path, store_url: str
) -> None:
    calls = (
        shell_call("echo one; exit 3", background=True),
        shell_call("kill -9 $$", background=True),
        shell_call("sleep 600", background=True, seconds=1),
        shell_call("touch begun; sleep 601", background=True),
        shell_call("echo two"),
    )
    async with open_processes(tmp_path, store_url, answer_with(*calls)) as world:
        await world.say("go")
        begun = await world.list()
        assert told(world.provider)[0].endswith(": you will be told its end]")
        lost = next(one for one in begun if "601" in one.command)
        await wait_until(lambda: [*(tmp_path / "work").glob("*/begun")])
        pid = (world.folder_of(lost).path / "pid").read_text().split()[0]
        os.kill(int(pid), signal.SIGKILL)
        ended = {one.command: one for one in await world.look_until_ended()}
        await world.watcher.look()
        await world.quiet()
        texts = await world.completions()
    assert [ended[str(call.args["command"])].state.value for call in calls] == [
        *("exited", "exited", "stopped", "lost", "exited"),
    ]
    assert len(texts) == 4, "a call waited for the fifth"
    words = sorted(text.splitlines()[-1].split(",")[0].split(":")[0] for text in texts)
    assert words == [
        *("[exit code 137 (killed by SIGKILL)", "[exit code 3", "[lost", "[stopped after 1 seconds")
    ]
    assert all(one.woken for one in ended.values() if one.background)
    assert ended["echo one; exit 3"].tail == "one\n"


async def test_a_command_past_its_time_goes_on_and_is_told(tmp_path: Path, store_url: str) -> None:
    secret = "hush-of-the-sandbox"
    register_secrets([secret])
    slow = shell_call(
        "echo first; until [ -e gate ]; do sleep 0.1; done; "
        f"printf key=%s {secret} | base64; echo last"
    )
    async with open_processes(tmp_path, store_url, answer_with(slow), foreground=1) as world:
        await world.say("go")
        [result] = told(world.provider)
        assert result.startswith("first\n[still running, in the background from now on, as prc_")
        [gate] = [one / "gate" for one in (tmp_path / "work").iterdir() if one.name[0] != "."]
        gate.touch()
        [ended] = await world.look_until_ended()
        await world.quiet()
        [text] = await world.completions()
        # Of what begins with other characters, bits of these are left around the secret.
        shown = re.escape(REDACTED)
        assert re.search(rf"first\n.{{0,8}}{shown}.{{0,4}}\nlast\n\[exit code 0, ", text)
        last: dict[str, Any] = world.provider.requests[-1].json or {}
        assert "\nlast" in str(last["messages"][-1]["content"])
        assert ended.tail is not None
        assert REDACTED in ended.tail
    assert (ended.state, ended.background) == (ProcessState.EXITED, True)


async def test_stopping_a_turn_leaves_what_runs_in_the_background(
    tmp_path: Path, store_url: str
) -> None:
    mark = f"6{os.getpid()}"
    calls = (
        shell_call("touch a; sleep 600", background=True),
        shell_call(f"touch b; setsid sleep {mark} & sleep 600"),
    )
    async with open_processes(tmp_path, store_url, answer_with(*calls)) as world:
        accepted = await world.engine.submit("go", target=CHAT)
        await wait_until(lambda: len([*(tmp_path / "work").glob("*/[ab]")]) == 2)
        assert await world.engine.request_stop(accepted.conversation_id)
        await wait_until(lambda: not find_processes(mark))

        async def has_ended() -> bool:
            await world.watcher.look()
            return any(one.state is ProcessState.STOPPED for one in await world.list())

        await wait_until(has_ended)
        first, second = sorted(await world.list(), key=lambda one: one.command)
        assert (first.state.is_open, second.why) == (True, "stopped: the turn was stopped")
        world.folder_of(first).ask_to_stop("stopped: the test is over")
        first, _ = sorted(await world.look_until_ended(), key=lambda one: one.command)
        assert first.why == "stopped: the test is over"
        await world.quiet()
        assert len(await world.completions()) == 1


@pytest.mark.both_databases
async def test_a_command_whose_turn_ended_without_it_is_stopped(
    tmp_path: Path, store_url: str
) -> None:
    call = shell_call("touch begun; sleep 600", background=True)
    async with open_processes(tmp_path, store_url, answer_with(call)) as world:
        await world.say("go")
        # As if a gateway had been killed in a call, and another one had given the turn up.
        await world.store.write(_wait_for_it)
        [begun] = await world.list()
        # And as if another gateway had been killed before it could start a command.
        never = replace(begun, id="prc_never", background=True, command="never begun")
        key = CallKey(turn_id=begun.turn, step=9, call_id="never")
        await world.store.write(processes.ask_process, never, key)
        ended = await world.look_until_ended()
        assert [one.why for one in ended] == ["stopped: its turn had ended"] * 2
        await world.quiet()
        [text] = await world.completions()
        assert text.startswith("The command 'never begun' (prc_never) has ended.")


async def test_a_command_that_cannot_be_started_is_told_by_its_call_alone(
    tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise SandboxError("there is no memory")

    monkeypatch.setattr(ProcessFolder, "start", refuse)
    call = shell_call("echo done", background=True)
    async with open_processes(tmp_path, store_url, answer_with(call)) as world:
        await world.say("go")
        [result] = told(world.provider)
        assert "there is no memory" in result
        [ended] = await world.look_until_ended()
        assert ended.state is ProcessState.STOPPED
        await world.quiet()
        assert await world.completions() == []


def _wait_for_it(t: Tx) -> None:
    t.execute("UPDATE shell_process SET background = 0")


async def test_one_watcher_watches_and_the_next_takes_its_place(
    tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "PERIOD", 0.01)
    async with open_processes(tmp_path, store_url, answer_with()) as world:
        looks: list[int] = []

        class Counted(ProcessWatcher):
            def __init__(self, number: int) -> None:
                super().__init__(world.context)
                self._number = number

            async def look(self) -> None:
                looks.append(self._number)

        first = asyncio.create_task(Counted(1).run())
        await wait_until(lambda: looks)
        second = asyncio.create_task(Counted(2).run())
        await wait_until(lambda: len(looks) > 20)
        assert {*looks} == {1}
        first.cancel()
        await asyncio.wait([first])
        await wait_until(lambda: 2 in looks)
        second.cancel()
        await asyncio.wait([second])


@pytest.mark.both_databases
async def test_old_output_is_removed_and_the_row_stays(tmp_path: Path, store_url: str) -> None:
    call = shell_call("echo kept", background=True)
    async with open_processes(tmp_path, store_url, answer_with(call)) as world:
        await world.say("go")
        await world.look_until_ended()
        await world.watcher.clean()
        [process] = await world.list()
        folder = world.folder_of(process)
        assert folder.read_output(100) == "kept\n"
        await world.store.write(_age)
        await world.watcher.clean()
        assert not folder.path.exists()
        [process] = await world.list()
        assert process.tail == "kept\n"
        assert process.pruned_at is not None
        # That of a conversation which was deleted.
        orphan = world.folder_of(replace(process, id="prc_unknown")).path
        make_old_folder(orphan)
        await world.watcher.clean()
        assert not orphan.is_dir()
        await world.quiet()


def make_old_folder(path: Path) -> None:
    path.mkdir()
    os.utime(path, (0, 0))


def _age(t: Tx) -> None:
    t.execute("UPDATE shell_process SET ended_at = ended_at - $1", watcher.KEEP)


@pytest.mark.both_databases
async def test_the_process_of_another_machine_is_left_to_it(tmp_path: Path, store_url: str) -> None:
    call = shell_call("until [ -e gate ]; do sleep 0.1; done", background=True)
    async with open_processes(tmp_path, store_url, answer_with(call)) as world:
        await world.say("go")
        [process] = await world.list()
        folder = world.folder_of(process)
        elsewhere = folder.path.with_name("elsewhere")
        await world.store.write(_move)
        folder.path.rename(elsewhere)
        await world.watcher.look()
        assert (await world.list())[0].state is ProcessState.RUNNING
        elsewhere.rename(folder.path)
        assert folder.look() is Life.ALIVE
        folder.ask_to_stop("stopped")
        [ended] = await world.look_until_ended()
        assert ended.host == "elsewhere"
        await world.quiet()


async def test_a_command_whose_folder_is_gone_is_lost(tmp_path: Path, store_url: str) -> None:
    call = shell_call("echo done", background=True)
    async with open_processes(tmp_path, store_url, answer_with(call)) as world:
        await world.say("go")
        [process] = await world.list()
        folder = world.folder_of(process)
        assert await folder.wait(seconds=60) is Life.ENDED
        # As after a backup was restored on this machine.
        folder.remove()
        [ended] = await world.look_until_ended()
        assert ended.state is ProcessState.LOST
        await world.quiet()


def _move(t: Tx) -> None:
    t.execute("UPDATE shell_process SET host = 'elsewhere'")
