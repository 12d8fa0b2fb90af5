"""The completion of a shell is installed once, where the shell finds it."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from clew.cli.completion import completion
from clew.cli.shell_completion import SHELLS, find_missing_completion, plan_completion

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("shell", SHELLS)
def test_a_second_installation_changes_nothing(shell: str, tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "SHELL": f"/bin/{shell}", "PATH": str(tmp_path)}
    (tmp_path / ".zshrc").write_text("alias l=ls\n")
    assert find_missing_completion(environ) is None, "clew is not on the path"
    (tmp_path / "clew").touch(mode=0o755)
    plan = find_missing_completion(environ)
    assert plan is not None
    assert plan == plan_completion(shell, environ)
    plan.install()
    assert find_missing_completion(environ) is None
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    plan.install()
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before
    assert (tmp_path / ".zshrc").read_text().startswith("alias l=ls\n")
    assert ("source" in (tmp_path / ".zshrc").read_text()) is (shell == "zsh")


def test_a_shell_that_completes_nothing_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "clew").touch(mode=0o755)
    assert find_missing_completion({"SHELL": "/bin/dash", "PATH": str(tmp_path)}) is None


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_can_load_the_script_that_the_command_installs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    told = [CliRunner().invoke(completion, ["bash", "--install"]) for _ in range(2)]
    assert [each.output.partition(":")[0] for each in told] == ["written", "unchanged"]
    file = tmp_path / "bash-completion" / "completions" / "clew"
    shown = subprocess.run(
        ["bash", "-c", f"source '{file}' && complete -p clew"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "clew" in shown.stdout
