"""The line of the commands that go on in the background, as a terminal shows it."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pytest

from clew.core.ids import ConversationId
from clew.core.journal import CallKey
from clew.core.scope import LOCAL
from clew.features.shell.processes import (
    ProcessEnd,
    ProcessState,
    ShellProcess,
    ask_process,
    settle_process,
)
from clew.plugin.loading import get_features
from clew.store.opening import open_store
from clew.testing import FakeProvider
from clew.testing.provider import echo
from tests.integration.api_server import running, settings_for
from tests.integration.rpc_clients import over_socket
from tests.tui.terminal_session import at_terminal

if TYPE_CHECKING:
    from pathlib import Path

    from clew.core.ids import TurnId
    from clew.store.contract import Store, Tx

ENDED = ProcessEnd(state=ProcessState.EXITED, exit_code=0)


@pytest.mark.parametrize("size", [(80, 24), (40, 10)], ids=str)
async def test_commands_in_the_background_have_a_line_while_they_run(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    with FakeProvider(echo) as provider:
        settings = settings_for(tmp_path, provider=provider)
        schemas = get_features(settings).schemas
        store = await open_store(settings.store.url, home=tmp_path, features=schemas)
        async with (
            running(settings, opened=store) as server,
            at_terminal(over_socket(server), tmp_path, size=size) as session,
        ):
            session.say("hello")
            await session.see("echo: hello")
            first, second, waited_for = [
                await _begin(store, session.app.controller.conversation_id, command)
                for command in ("sleep 600", "make\nall \x1b[31m", "sleep 900")
            ]
            session.say("more")
            await session.see("2 commands: make", "/ps shows more")
            await session.same()
            await store.write(settle_process, second, ENDED, text="done", untrusted=False)
            await session.see("1 command: sleep")
            await session.same()
            await store.write(settle_process, first, ENDED, text="done", untrusted=False)
            await session.gone("1 command:")
            await session.same()
            assert "sleep 900" not in session.text, "a call waits for it"
            await store.write(settle_process, waited_for, ENDED, text="done", untrusted=False)


async def _begin(store: Store, conversation: str, command: str) -> str:
    """Store a command of a conversation as one that runs on another machine."""
    turn = await store.read(_read_turn)
    process = ShellProcess(
        id=f"prc_{secrets.token_hex(8)}",
        conversation=ConversationId(conversation),
        turn=turn,
        scope=LOCAL,
        command=command,
        workspace="",
        level="work",
        host="elsewhere",
        state=ProcessState.ASKED,
        background=command != "sleep 900",
        created_at=0,
    )
    await store.write(ask_process, process, CallKey(turn_id=turn, step=1, call_id="call_1"))
    return process.id


def _read_turn(t: Tx) -> TurnId:
    return t.fetch_value("SELECT id FROM turn LIMIT 1")
