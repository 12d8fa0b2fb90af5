"""
Hold one conversation after another with Hermes Agent, as its own terminal does.

Run by ``generate_hermes_runs`` with the Python that has ``hermes-agent``: steps as JSON, and a file
that it writes the number of each step to.
"""
# pyright: basic

from __future__ import annotations

import json
import os
import sqlite3
import sys
import threading
import time
from pathlib import Path

import cli as program

HOME = Path(os.environ["HERMES_HOME"])
TOOLSETS = ["terminal", "file", "todo", "memory", "delegation"]


def find_last() -> str:
    """Return the session that was begun last."""
    database = sqlite3.connect(HOME / "state.db")
    query = "SELECT id FROM sessions WHERE source = 'cli' ORDER BY started_at DESC LIMIT 1"
    return database.execute(query).fetchone()[0]


def interrupt(terminal) -> None:
    time.sleep(2)
    terminal.agent.interrupt()


def main(steps: list[list[str]], progress: Path) -> None:
    """Do the steps: ``say TEXT``, ``do /COMMAND``, ``abort TEXT``, ``resume``."""
    resume = find_last() if steps[0][0] == "resume" else None
    terminal = program.HermesCLI(toolsets=TOOLSETS, resume=resume)
    for number, (verb, text) in enumerate(steps):
        progress.write_text(str(number))
        if verb == "do":
            terminal.process_command(text)
        elif verb in ("say", "abort"):
            if verb == "abort":
                threading.Thread(target=interrupt, args=(terminal,), daemon=True).start()
            terminal.chat(text)
            # As its loop does after each turn: a compression may have gone on in another session.
            agent = terminal.agent
            if agent is not None and agent.session_id != terminal.session_id:
                terminal.session_id = agent.session_id
    progress.write_text("done")
    if finalize := getattr(program, "_finalize_single_query", None):  # newer releases
        finalize(terminal)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), Path(sys.argv[2]))
    os._exit(0)
