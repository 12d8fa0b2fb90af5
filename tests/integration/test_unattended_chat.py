"""``clew chat TEXT`` where nobody sits: a call that needs a person is told and not waited for."""

from __future__ import annotations

import asyncio
import re
import shlex
import threading
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from clew.cli.chat_client import ChatClient
from clew.cli.common import CliContext
from clew.cli.entry_point import run_command
from clew.config import load_settings
from clew.runtime import open_application
from tests.integration.test_line_chat_questions import AGENT
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

CALL = 'call cut {"colour": "red"}'


@pytest.fixture
def clew(tmp_path: Path) -> Callable[..., int]:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    module = f"gardener_{uuid4().hex}"
    (plugins / f"{module}.py").write_text(AGENT, encoding="utf-8")
    given = (f"agent.object={module}:agent", "model.name=offline")
    flags = [part for each in given for part in ("--set", each)]
    return lambda *args: run_command(["--home", str(tmp_path), *flags, *args])


def test_it_ends_with_a_sentence_that_has_the_call_and_how_to_allow_it(
    clew: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert clew("chat", "--approval-timeout", "0", CALL) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert 'cut({"colour":"red"})' in told.err
    printed = re.search(
        r'clew: .*?  (clew .* chat -c main "(/approve apr_\w+)") ', told.err, re.DOTALL
    )
    assert printed is not None
    approve = printed[2]
    # The next message in that conversation would wait as well.
    assert clew("chat", "--approval-timeout", "0", "hello?") == 1
    assert 'cut({"colour":"red"})' in capsys.readouterr().err
    assert not (tmp_path / "plugins" / "cut.txt").exists()
    # Nobody agrees to what is not named; the command of the sentence works, and goes on.
    assert clew("chat", "/approve") == 2
    assert approve in capsys.readouterr().err
    # As it is printed: with the home, the agent and the model of the run.
    assert run_command(shlex.split(printed[1])[1:]) == 0
    assert "cut all red ones" in capsys.readouterr().out
    assert (tmp_path / "plugins" / "cut.txt").read_text() == "red|"
    assert clew("chat", approve) == 2
    assert "was answered" in capsys.readouterr().err
    assert (tmp_path / "plugins" / "cut.txt").read_text() == "red|"


def test_the_printed_command_has_the_options_of_the_run_and_no_secret() -> None:
    flags = {"model.api_key": "sk-1", "agent.instructions": "be kind", "store.url": "pg://a:b@c/d"}
    command = CliContext(home=Path("/my home"), flags=flags).format_command()
    assert shlex.split(command) == [
        *("clew", "--home", "/my home", "--set", "model.api_key=SECRET"),
        *("--set", "agent.instructions=be kind", "--set", "store.url=pg://a:********@c/d"),
    ]


def test_a_refusal_by_the_command_of_the_sentence(
    clew: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert clew("chat", "--json", "--approval-timeout", "0", CALL) == 1
    told = capsys.readouterr()
    assert told.out == ""
    deny = re.search(r"/deny apr_\w+", told.err)
    assert deny is not None
    assert clew("chat", "/deny apr_nothing") == 2
    assert clew("chat", deny[0]) == 0
    assert not (tmp_path / "plugins" / "cut.txt").exists()


def test_an_answer_from_elsewhere_in_time_is_awaited(
    clew: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def approve() -> None:
        settings = load_settings(home=tmp_path, flags={"model.name": "offline"}, environ={})
        async with open_application(settings, role="test", own_only=True) as product:
            talk = ChatClient(product.engine, "main")

            async def asked() -> bool:
                return bool(await talk.list_open_approvals())

            await wait_until(asked)
            (question,) = await talk.list_open_approvals()
            await talk.answer_approval(question.id, yes=True)

    elsewhere = threading.Thread(target=lambda: asyncio.run(approve()))
    elsewhere.start()
    try:
        assert clew("chat", "--approval-timeout", "60", CALL) == 0
    finally:
        elsewhere.join()
    assert "cut all red ones" in capsys.readouterr().out
    assert (tmp_path / "plugins" / "cut.txt").read_text() == "red|"
