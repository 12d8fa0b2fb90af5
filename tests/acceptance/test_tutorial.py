"""The pages do what they say: every command in them is run, and prints what stands below it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import forking
from tests.acceptance import recording
from tests.acceptance.pages import Step, steps
from tests.acceptance.program import CLEW, PATIENCE, Clew
from tests.acceptance.terminal import Terminal
from tests.acceptance.typed import programs

if TYPE_CHECKING:
    from collections.abc import Generator

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [page for page in sorted(ROOT.glob("docs/*/*.md")) if steps(page)]
#: Done by whoever runs this: the tree is there, and its program is installed.
DONE = ("git clone ", "cd clew", ". .venv/bin/activate")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(sys.platform == "win32", reason="a page for POSIX shells"),
]


@pytest.fixture
def port() -> str:
    """A port that is free, for the one that the page uses."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return str(found.getsockname()[1])


class Shell:
    """bash, with job control, one command at a time."""

    def __init__(self, environ: dict[str, str], folder: Path) -> None:
        self._bash = subprocess.Popen(
            ["bash", "--norc"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environ,
            encoding="utf-8",
            start_new_session=True,
        )

    def run(self, command: str) -> str:
        """Return the output of a command, or the first line of one that runs in the background."""
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        background = command.endswith("&")
        self._bash.stdin.write(command + ("\n" if background else "\necho; echo done: $?\n"))
        self._bash.stdin.flush()
        printed: list[str] = []
        for line in self._bash.stdout:
            if line.startswith("done: "):
                assert line == "done: 0\n", (command, printed)
                break
            printed.append(line)
            if background:
                break
        return "".join(printed)

    def close(self) -> None:
        os.killpg(self._bash.pid, signal.SIGKILL)
        self._bash.communicate()


@pytest.fixture
def shell(clew: Clew, port: str, tmp_path: Path) -> Generator[Shell]:
    with programs() as folder:
        path = os.pathsep.join([str(folder), str(Path(CLEW).parent), os.environ["PATH"]])
        shell = Shell({**clew.environ, "PATH": path, "CLEW_API__PORT": port}, tmp_path)
        yield shell
        shell.close()


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_every_command_of_a_page_prints_what_the_page_shows(
    clew: Clew, shell: Shell, port: str, page: Path
) -> None:
    install_agents(clew, page)
    for step in steps(page):
        if step.command.startswith(DONE):
            continue
        command = step.command.replace("8420", port)
        if step.typed:
            printed = typed(clew, command, step)
        else:
            printed = shell.run(command).replace(port, "8420")
        assert step.matches(printed), f"{command}\nprints\n{printed}"


def test_the_agent_and_the_client_of_the_readme_work(clew: Clew, tmp_path: Path) -> None:
    install_agents(clew, README)
    own = clew.with_env({"CLEW_AGENT__OBJECT": "my_agents:agent"})
    assert own.ok("chat", 'call count_roses {"colour": "red"}') == "The tool answered: 12\n"
    (client,) = [text for text in pythons(README) if "OpenAI(" in text]
    with own.serving() as (url, _):
        text = client.replace("http://127.0.0.1:8420", url)
        program = tmp_path / "client.py"
        program.write_text(text, encoding="utf-8")
        printed = forking.run(
            [str(program)], environ=own.environ, within=PATIENCE, program="tests.forking:script"
        )
        assert printed.stdout == 'You told me: call count_roses {"colour": "red"}\n'


def test_the_recording_in_the_readme_is_what_happens() -> None:
    assert recording.record() == recording.in_readme()


def install_agents(clew: Clew, page: Path) -> None:
    """Put the agent that a page shows where it says."""
    plugins = clew.home / "plugins"
    plugins.mkdir(parents=True, mode=0o700)
    for text in pythons(page):
        if "Agent(" in text:
            (plugins / "my_agents.py").write_text(text, encoding="utf-8")


def pythons(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def typed(clew: Clew, command: str, step: Step) -> str:
    """Return the screen after a person has typed."""
    assert command == "make chat"
    assert "exec $(BIN)/clew chat\n" in (ROOT / "Makefile").read_text(encoding="utf-8")
    with Terminal(clew.with_env({"NO_COLOR": "1"}), "chat") as terminal:
        for line in step.typed:
            terminal.see("> ")
            terminal.type(f"{line}\n")
        assert terminal.ended() == 0
        screen = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", terminal.screen)
        return screen.replace("\r\n", "\n").replace("\r", "")
