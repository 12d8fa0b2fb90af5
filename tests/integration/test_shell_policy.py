"""Patterns allow exactly what bash runs; ``make soak shell-policy`` is the long form."""

from __future__ import annotations

from tests.sandboxes import needs_bubblewrap
from tests.shell_policy import Generator, judge, observe

#: Each is something else than it seems, or nearly.
_NASTY = [
    "git status; rm x", "git status\nrm x", "git status &rm x", "git\tstatus", "git status|rm x",
    "git 'status' $(rm x)", "git status `rm x`", 'git status "$(rm x)"', 'git status "\\$(rm x)"',
    "git status '; rm x'", "git status > ../out/x", "git status >../out/x <a", "git status > x y",
    "git status 2>&1 >&../out/x", "timeout 5 git status", "timeout 5 rm x",
    "timeout -k 1 rm git status", "env git status", "env GIT_DIR=x git status",
    "env -S 'rm x' git status", "xargs git status", "echo x | xargs git", "ls | xargs ls",
    "ls | xargs -I{} rm {}", "nice -n 5 nohup git status", "PATH=. git status",
    "git=rm; $git status", "eval git status", "exec git status", "command git status",
    "git() { rm; }; git status", "ls<(rm x)", "cat <<E\n$(rm x)\nE", "ls {a,b}",
    "g'i't s\"tat\"us", "\\g\\i\\t status", "git st\\\natus", "git\u00a0status",
    "git\u2003status; rm x", "git status # ; rm x", "git status \\; rm x", "git status\r\nrm x",
    "git status !!", "! git status", "git status && ls || pwd", "git status & ls",
    "[ -n x ] && git status", "time git status",
]  # fmt: skip


@needs_bubblewrap
def test_a_pattern_allows_no_command_that_bash_runs_as_something_else() -> None:
    commands = [*_NASTY, *Generator(7).commands(60)]
    found = judge(commands, observe(commands))
    assert found.wrong == ()
    assert found.executed > 50
    # Neither everything is refused, nor is much of what is plain.
    assert found.allowed > found.refused / 2 > 0
