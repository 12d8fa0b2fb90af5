"""What plugins and libraries leave behind keeps no process, and fills no log."""

from __future__ import annotations

import logging
import subprocess
import sys

from structlog.testing import capture_logs

from clew.cli.logs import StdlibLogBridge

_SCRIPT = """
import sys, threading, time
from clew.cli import entry_point
entry_point.EXIT_SECONDS = 0.1
threading.Thread(target=time.sleep, args=(60,), name="endless").start()
sys.argv = ["clew", "no-such-command"]
entry_point.main()
"""


def test_a_thread_that_never_ends_keeps_no_process_and_changes_no_exit_code() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 2
    assert "clew: threads that do not end: MainThread, endless" in done.stderr


def test_a_logger_that_floods_the_log_is_cut_and_others_are_not() -> None:
    bridge = StdlibLogBridge()
    with capture_logs() as logs:
        for number in range(1000):
            bridge.emit(_record("flood", f"{number} {'x' * 100_000}", at=10.0))
        bridge.emit(_record("calm", "hello", at=10.0))
        bridge.emit(_record("flood", "a minute later", at=70.0))
    events = [line["event"] for line in logs]
    assert events.count("log_flooded") == 1
    assert events[-2:] == ["hello", "a minute later"]
    assert len(events) == 303
    assert max(map(len, events)) < 21_000


def _record(name: str, text: str, *, at: float) -> logging.LogRecord:
    record = logging.LogRecord(name, logging.WARNING, "", 0, text, (), None)
    record.created = at
    return record
