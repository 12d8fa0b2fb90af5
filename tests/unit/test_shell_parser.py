"""A shell command is plain, or it is said why it is not."""

from __future__ import annotations

import pytest

from clew.core.command_shape import CommandPattern, SimpleCommand
from clew.sandbox.shell_parser import parse_command

_PLAIN: list[tuple[str, list[list[str]]]] = [
    ("git status 'a b' \"c d\" x\\ y a\"b\"'c'", [["git", "status", "a b", "c d", "x y", "abc"]]),
    ("ls -la && wc -l | sort; pwd\ndate || id", [["ls", "-la"], ["wc", "-l"], ["sort"], ["pwd"],
                                                ["date"], ["id"]]),
    ("timeout -k 5 10s git status", [["git", "status"]]),
    ("nice -n 5 env nohup stdbuf -oL time -p git log", [["git", "log"]]),
    ("env -u HOME -- git log", [["git", "log"]]),
    ("foo git add -A", [["foo", "git", "add", "-A"]]),
    ("exec eval sudo", [["exec", "eval", "sudo"]]),
    ("echo '' \"  a b\" '*' '$(x)'", [["echo", "", "  a b", "*", "$(x)"]]),
    ("git commit -m 'über alles'", [["git", "commit", "-m", "über alles"]]),
    ("a 2>&1 >/dev/null | b", [["a"], ["b"]]),
    ("timeout", [["timeout"]]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), _PLAIN)
def test_a_list_of_plain_commands_is_read_without_its_wrappers(
    text: str, words: list[list[str]]
) -> None:
    if text == "timeout":
        assert parse_command(text).problem is not None
        return
    shape = parse_command(text)
    assert shape.problem is None
    assert [list(one.words) for one in shape.commands] == words


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "git $(x)", "git `x`", "git $x", 'git "$x"', "git ${x}", "git $'x'", "git *.py",
        "git ~/x", "git {a,b}", "git [ab]", "A=1 git", "A=1", "a=(1)", "export A=1", "unset A",
        "git &", "git & ls", "git |& ls", "! git", "(git)", "{ git; }", "if git; then ls; fi",
        "f() { git; }; f", "git <<E\nx\nE", "git <<< x", "cat <(git)", "[ a ]", "[[ a ]]", "((1))",
        "git # x", "git 'x", 'git "x', "git \\", "git;;", "coproc git", "git\u00a0status",
        "git\u2003status", "git\u200bstatus", "git\rls", "git\x00ls", "git > a b", "git 3> a",
        "git &> a", "git <> a", "'' git", "env A=1 git", "env -S 'git status'", "env -- A=1 git",
        "timeout --unknown 5 git", "timeout git", "xargs -I{} git {}", "command -p git", 'A"="1 x',
        "time -f x git", "git \\\n status", "x" * 20_001, "(" * 5000, "function x { y; }",
        "a+=1 git", "a[0]=1 git", "for x in a; do b; done", "while a; do b; done",
    ],
)  # fmt: skip
def test_what_is_not_plain_has_a_reason(text: str) -> None:
    shape = parse_command(text)
    assert shape.problem
    assert not shape.commands


def test_redirections_are_named_and_what_xargs_adds_is_open() -> None:
    shape = parse_command("ls > out 2>> ../log < /etc/passwd | xargs -n1 git status")
    assert shape.redirects == ("out", "../log", "/etc/passwd")
    assert shape.commands[-1] == SimpleCommand(words=("git", "status"), open_ended=True)


@pytest.mark.parametrize(
    ("pattern", "command", "fits"),
    [
        ("git status *", "git status", True),
        ("git status *", "git status -s .", True),
        ("git status *", "git stash", False),
        ("git status", "git status -s", False),
        ("git log --max-count=*", "git log --max-count=5", True),
        ("git * origin", "git push origin", True),
        ("git * origin", "git push --force origin", False),
        ("git commit -m 'a b'", "git commit -m 'a b'", True),
        ("git status", "xargs git status", False),
        ("git status *", "xargs git status", True),
        ("git status *", "xargs git", False),
        ("*", "rm -rf x", True),
    ],
)
def test_a_pattern_is_compared_word_by_word(pattern: str, command: str, fits: bool) -> None:
    [one] = parse_command(command).commands
    assert CommandPattern.parse(pattern).matches(one) is fits


@pytest.mark.parametrize("text", ["", "  ", "git 'x"])
def test_a_pattern_without_words_or_end_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"pattern|quotation"):
        CommandPattern.parse(text)
