"""``/restart`` on a chat platform: the gateway ends, and the next one says so, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clew.commands.restart import SUPERVISOR_VARIABLE, is_supervised
from clew.distribution import VERSION
from clew.testing.telegram import FakeTelegram
from tests.acceptance.program import until

if TYPE_CHECKING:
    from tests.acceptance.program import Clew

DONE = f"The gateway has restarted: this is Clew {VERSION}."
OPERATOR, GUEST = 1, 2


def serve_on(clew: Clew, telegram: FakeTelegram, **more: str) -> Clew:
    settings = {
        "TOKEN": telegram.token,
        "BASE_URL": telegram.base_url,
        "ALLOW": "*",
        "OPERATORS": str(OPERATOR),
    }
    named = {f"CLEW_CHANNELS__TELEGRAM__{name}": value for name, value in settings.items()}
    return clew.with_env({**named, **more})


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("killed", [False, True], ids=["ended", "killed on the way"])
def test_a_restart_is_told_once_by_the_next_gateway(clew: Clew, killed: bool) -> None:
    with FakeTelegram() as telegram:
        program = serve_on(clew, telegram, **{SUPERVISOR_VARIABLE: "test"})
        with program.serving() as (_, process):
            telegram.post_message("/restart", user=GUEST)
            until(lambda: telegram.list_texts(GUEST))
            assert process.poll() is None
            telegram.post_message("/restart", user=OPERATOR)
            if killed:
                # Acknowledged: it is stored, and nothing else tells how far it has come.
                until(lambda: telegram.pending_count == 0)
                process.kill()
            until(lambda: process.poll() is not None)
        for _ in range(2):
            with program.serving() as (_, process):
                until(lambda: DONE in telegram.list_texts(OPERATOR))
                telegram.post_message("still there?", user=OPERATOR)
                until(lambda: telegram.list_texts(OPERATOR)[-1] == "You said: still there?")
                assert process.poll() is None
        assert telegram.list_texts(OPERATOR).count(DONE) == 1
        assert telegram.list_texts(GUEST) == ["/restart is for operators only."]


@pytest.mark.slow
def test_a_gateway_that_nobody_would_start_again_refuses(clew: Clew) -> None:
    with FakeTelegram() as telegram, serve_on(clew, telegram).serving() as (_, process):
        telegram.post_message("/restart", user=OPERATOR)
        until(lambda: telegram.list_texts(OPERATOR))
        assert "clew service install" in telegram.list_texts(OPERATOR)[0]
        assert process.poll() is None


def test_only_the_process_that_a_manager_started_is_supervised() -> None:
    assert is_supervised({SUPERVISOR_VARIABLE: "launchd"}, 7)
    assert is_supervised({"SYSTEMD_EXEC_PID": "7"}, 7)
    # A child of a service, such as a terminal of the desktop.
    assert not is_supervised({"SYSTEMD_EXEC_PID": "6", "INVOCATION_ID": "a"}, 7)
    assert not is_supervised({SUPERVISOR_VARIABLE: ""}, 7)
