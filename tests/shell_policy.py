"""
Generated shell commands, and what a real bash runs for them.

The reference knows nothing of the parser: bash runs each command in the sandbox, where every
program is a stub that logs its arguments, and their output is made to mislead ``xargs``.
"""

from __future__ import annotations

import asyncio
import random
import shlex
import tempfile
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.core.grant import covers_command
from clew.core.tool_facts import ToolFacts
from clew.sandbox.runner import run_command
from clew.sandbox.shell_parser import parse_command
from tests.sandboxes import make_bubblewrap, make_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PATTERNS: Final = (
    "git status *", "git diff *", "git log *", "git log --oneline", "git show HEAD", "git branch",
    "git * --stat", "git add -A", "git commit -m *", "ls *", "ls -la", "ls", "cat *", "cat a.txt",
    "grep *", "grep -r x *", "head -n *", "head -n 5 a.txt", "wc -l *", "echo *", "echo a",
    "npm run build", "npm test *", "make", "make *", "python3 -m pytest *", "cargo build *",
    "docker ps *", "git status", "pwd",
)  # fmt: skip
#: Programs that are stubs; the wrappers are real.
_STUBS: Final = (
    "git", "ls", "cat", "grep", "head", "wc", "echo", "npm", "make", "python3", "cargo", "docker",
    "pwd", "rm", "curl", "sudo", "doas", "foo", "bash", "sh", "find", "tee", "kill", "printf",
    "test", "watch", "strace", "chmod", "true", "false", "[",
)  # fmt: skip
_WRAPPERS: Final = ("timeout", "nice", "env", "nohup", "stdbuf", "setsid", "ionice", "xargs")
_STUB: Final = """#!/bin/sh
read name code < ROOT/state
printf '%s\\0' "${0##*/}" "$@" END-OF-CALL >> ROOT/logs/$name.log
echo 'push rm -rf /'
exit $code
"""
_DRIVER: Final = """
root=$PWD; mkdir -p stubs in out logs; cp stub stubs/.stub; chmod +x stubs/.stub
sed -i "s#ROOT#$root#" stubs/.stub
for name in STUBS; do ln -sf .stub "stubs/$name"; done
for name in WRAPPERS; do ln -sf "$(command -v $name)" "stubs/$name"; done
echo 'enable -n echo pwd kill printf test [ true false' > prelude
shopt -s nullglob dotglob
procs=(/proc/[0-9]*); alone=${#procs[@]}
# A process left in the background must not log into the next command's file.
settle() {
  for try in {1..100}; do
    procs=(/proc/[0-9]*); (( ${#procs[@]} <= alone )) && return
    /bin/sleep 0.02
  done
  kill -KILL -1
}
for file in cmds/*; do
  name=${file##*/}; : > "logs/$name.log"
  for code in 0 1; do
    echo "$name $code" > state
    cd in
    BASH_ENV=$root/prelude PATH=$root/stubs HOME=$root/in \\
      /usr/bin/timeout -s KILL 5 /bin/bash -c "$(<"$root/$file")" < /dev/null > /dev/null 2>&1
    cd "$root"; settle
    found=(out/*); (( ${#found[@]} )) && : > "logs/$name.out"
    found+=(in/*); (( ${#found[@]} )) && /bin/rm -rf -- "${found[@]}"
  done
done
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Observed:
    """Run of a command in bash, whether its programs succeed or fail."""

    #: Each program that ran, with its arguments.
    calls: tuple[tuple[str, ...], ...]
    wrote_outside: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """Comparison of the patterns with bash, in counts."""

    commands: int
    #: Commands that ran at least one program.
    executed: int
    #: Pairs of a command and a pattern.
    allowed: int
    #: Pairs that bash's calls fit, but that are not allowed: too careful.
    refused: int
    #: Commands that a pattern allowed, though bash ran something else.
    wrong: tuple[tuple[str, str], ...]


def judge(commands: Sequence[str], observed: Sequence[Observed]) -> Judgement:
    """Compare what each pattern, and all of them, allow with what bash did."""
    allowed = refused = 0
    wrong: list[tuple[str, str]] = []
    for command, seen in zip(commands, observed, strict=True):
        facts = ToolFacts(command=command, sandbox="net", network=True)
        shape = parse_command(command)
        for patterns in (*((one,) for one in PATTERNS), PATTERNS):
            fits, allows = _fits(patterns, seen), covers_command(patterns, facts, shape)
            allowed += allows
            refused += fits and bool(seen.calls) and not allows
            if allows and not fits:
                wrong.append((command, " or ".join(patterns)))
    return Judgement(
        commands=len(commands),
        executed=sum(bool(one.calls) for one in observed),
        allowed=allowed,
        refused=refused,
        wrong=tuple(wrong),
    )


def is_allowed(command: str) -> bool:
    """Return whether the patterns together allow a command; alone, none allows more."""
    facts = ToolFacts(command=command, sandbox="net", network=True)
    return covers_command(PATTERNS, facts, parse_command(command))


def _fits(patterns: Sequence[str], seen: Observed) -> bool:
    fitting = all(any(_fits_call(one, call) for one in patterns) for call in seen.calls)
    return fitting and not seen.wrote_outside


def _fits_call(pattern: str, call: Sequence[str]) -> bool:
    words = shlex.split(pattern)
    rest = words[-1] == "*"
    fixed = words[:-1] if rest else words
    if len(call) < len(fixed) or (len(call) > len(fixed) and not rest):
        return False
    return all(fnmatchcase(given, word) for word, given in zip(fixed, call, strict=False))


def observe(commands: Sequence[str], *, batch: int = 250) -> list[Observed]:
    """Run each command in a real bash, in the sandbox."""
    found: list[Observed] = []
    for begins in range(0, len(commands), batch):
        found += asyncio.run(_observe_batch(commands[begins : begins + batch]))
    return found


async def _observe_batch(commands: Sequence[str]) -> list[Observed]:
    with tempfile.TemporaryDirectory() as name:
        sandbox = make_bubblewrap(Path(name))
        request = make_request(Path(name), seconds=300, disk=2**28)
        folder = request.workspace
        (folder / "cmds").mkdir(parents=True)
        for number, command in enumerate(commands):
            (folder / "cmds" / f"{number:05}").write_text(command, encoding="utf-8")
        (folder / "stub").write_text(_STUB)
        driver = _DRIVER.replace("STUBS", " ".join(_STUBS)).replace("WRAPPERS", " ".join(_WRAPPERS))
        done = await run_command(["/bin/bash", "-c", driver], request, sandbox)
        assert done.stopped is None, done
        return [_read(folder / "logs", number) for number in range(len(commands))]


def _read(logs: Path, number: int) -> Observed:
    text = (logs / f"{number:05}.log").read_bytes().decode(errors="surrogateescape")
    # Each call is one write: the programs of a pipeline log at the same time.
    calls = [tuple(one.split("\0")) for one in text.split("\0END-OF-CALL\0") if one]
    return Observed(calls=tuple(calls), wrote_outside=(logs / f"{number:05}.out").exists())


# Generated commands


class Generator:
    """Commands that a pattern may allow, and the many ways in which they are something else."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        #: The share that is changed: small in half of the commands, so that patterns allow some.
        self._wildness = 1.0

    def commands(self, count: int) -> Iterator[str]:
        for _ in range(count):
            yield self._command()

    def _one(self, options: Sequence[str]) -> str:
        return self._random.choice(options)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share * self._wildness

    def _command(self) -> str:
        self._wildness = self._random.choice((0.2, 1.0))
        parts = [self._simple()]
        while self._chance(0.3):
            parts += [self._one(_JOINS), self._simple()]
        text = "".join(parts)
        if self._chance(0.25):
            text = self._one(_FRAMES).replace("CMD", text)
        if self._chance(0.3):
            place = self._random.randrange(len(text) + 1)
            text = text[:place] + self._one(_ODDITIES) + text[place:]
        return text

    def _simple(self) -> str:
        words = shlex.split(self._one(_BASES))
        self._shuffle_flags(words)
        text = " ".join(self._quote(word) for word in words)
        while self._chance(0.3):
            text = f"{self._one(_PREFIXES)} {text}"
        if self._chance(0.25):
            text += f" {self._one(_ADDITIONS)}"
        return text

    def _shuffle_flags(self, words: list[str]) -> None:
        if len(words) > 2 and self._chance(0.3):
            tail = words[1:]
            self._random.shuffle(tail)
            words[1:] = tail

    def _quote(self, word: str) -> str:
        return self._random.choice(_QUOTINGS)(word) if self._chance(0.4) else word


def _split(word: str) -> str:
    return f"{word[:1]}''{word[1:]}"


_QUOTINGS: Final[tuple[Callable[[str], str], ...]] = (
    lambda word: f"'{word}'",
    lambda word: f'"{word}"',
    lambda word: f"$'{word}'",
    lambda word: f'$"{word}"',
    lambda word: "".join(f"\\{letter}" for letter in word),
    lambda word: f"\\{word}",
    _split,
    lambda word: f'{word[:1]}"{word[1:]}"',
    lambda word: f"'{word} '",
    lambda word: f"{word}\\\n",
    lambda word: f"${{x:-{word}}}",
    lambda word: f"$(echo {word})",
    lambda word: f"`echo {word}`",
    lambda word: f"{{{word},rm}}",
    lambda word: f"{word}*",
)
_BASES: Final = (
    "git status", "git status -s", "git diff HEAD", "git log --oneline", "git log --oneline -n 3",
    "git show HEAD", "git branch", "git branch -D main", "git push --stat", "git add -A",
    "git add -A .", "git commit -m 'a b'", "ls", "ls -la", "ls -la /", "cat a.txt",
    "cat a.txt b.txt", "grep -r x .", "head -n 5 a.txt", "wc -l a.txt", "echo a", "echo a b",
    "npm run build", "npm run deploy", "npm test", "make", "make install", "python3 -m pytest -q",
    "python3 -c x", "cargo build", "docker ps -a", "docker run x", "pwd", "rm -rf x",
    "curl -d @x http://e", "git", "find . -delete", "bash -c 'rm x'", "sh -c 'git status'",
    "tee x",
)  # fmt: skip
_JOINS: Final = (
    "; ", " && ", " || ", " | ", " & ", " |& ", "\n", ";", "&&", "|", ";;", " ; ; ", "\r\n",
    " \\\n", "| xargs ", " | xargs -n1 ", " | xargs -I{} ",
)  # fmt: skip
_PREFIXES: Final = (
    "timeout 5", "timeout -k 1 5", "timeout -s KILL 5s", "timeout --foreground 5", "timeout -v 5",
    "timeout --unknown", "timeout", "nice", "nice -n 5", "nice -5", "env", "env -i", "env A=1",
    "env -u A", "env -S 'rm x'", "env -C /", "env --", "env -- A=1", "nohup", "stdbuf -oL",
    "stdbuf -o L", "setsid", "setsid -w", "ionice -c 3", "ionice -c2 -n0", "xargs", "xargs -0",
    "xargs -n 1", "xargs -I x", "xargs -t", "command", "command -p", "command -v", "command --",
    "builtin", "exec", "exec -a git", "eval", "time", "time -p", "sudo", "doas", "foo", "watch",
    "strace", "A=1", "PATH=.", "a[0]=1", "a+=1", "!", "coproc", ">x", "2>&1", "<x", "-", "\\",
    "''", "if", "function", "then", "trap", "source", ".", "noglob",
)  # fmt: skip
_ADDITIONS: Final = (
    "> x", ">> x", "> ../out/y", "> ../out/x", "2> ../out/x", "&> ../out/x", ">| ../out/x",
    "> '../out/x'", "< a.txt", "< <(rm x)", "<<< x", "<<E\n$(rm x)\nE", "<<'E'\nrm x\nE", "2>&1",
    "> /dev/null", "> x y", "3> ../out/x", ">& ../out/x", "> $(rm x)", "$(rm x)", "`rm x`", "$x",
    "${x:=rm}", "$((1+1))", "*", "?", "[a]", "~", "{a,b}", "# rm", "<(rm x)", ">(rm x)",
    "'$(rm x)'", '"$(rm x)"', "'; rm x'", '"; rm x"', "\\; rm x", "&", "--", "--output=../out/x",
    "!!", "$'\\n'rm", "\u00a0x", "\u2003; rm x", "\u200b", "'\u00fc'", "\u00fc", "\\\n; rm x",
    "'a\nrm x'", '"\\$(rm x)"', '"\\`rm x\\`"', "\t-x", "-exec rm {} +", "%x", "^x", "=x", "a=b",
    "@", "x'y",
)  # fmt: skip
_FRAMES: Final = (
    "(CMD)", "{ CMD; }", "if true; then CMD; fi", "f() { CMD; }; f", "for x in 1; do CMD; done",
    "eval 'CMD'", 'eval "CMD"', "bash -c 'CMD'", "$(CMD)", "`CMD`", "x=$(CMD)", "! CMD", "CMD &",
    "case x in x) CMD;; esac", "[[ -n x ]] && CMD", "((1)) && CMD",
    "while false; do rm; done; CMD", "cat <<E\nCMD\nE", "cat <<E | sh\nCMD\nE", "exec CMD",
    "time CMD", "coproc CMD", " CMD", "\tCMD", "CMD;", "CMD\n", "\nCMD", "# x\nCMD", "CMD # x",
    "alias git=rm\nCMD", "enable -f x y; CMD", "hash -p stubs/rm git; CMD", "set -- x; CMD",
    "export PATH=.; CMD", "cd ..; CMD", "umask 0; CMD", "ls() { rm; }\nCMD",
    "git() { rm \"$@\"; }; CMD", "trap 'rm x' EXIT; CMD", ": $(rm x); CMD", "echo $(CMD)",
    "function ls { rm x; }; CMD", "set -f; CMD", "shopt -s extglob; CMD",
)  # fmt: skip
_ODDITIES: Final = (
    "'", '"', "\\", "`", "$", "(", ")", "{", "}", "[", "]", ";", "&", "|", "<", ">", "#", "!",
    "~", "*", "?", "=", "\n", "\t", "\r", "\u00a0", "\u2003", "\u3000", "\u200b", "\u0085",
    "\ufeff", "\x01", "\x7f", "$'", "$(", "${", "((", "<<", "&&", "||", "''", "-", "--", "%", "^",
    "@", ",", ":", "+", "/", "é", "\U0001f600",
)  # fmt: skip
