"""Running of the model's commands, and the text that it gets of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from clew.core.escapes import strip_sequences
from clew.features.shell.access import find_sandbox
from clew.plugin import get_turn_context
from clew.sandbox.errors import SandboxError
from clew.sandbox.request import find_python
from clew.sandbox.runner import run_command

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from clew.sandbox.runner import CommandResult

#: Bytes of a command or a script: the kernel refuses arguments of more than 128 KB.
_LONGEST: Final = 100_000
#: Runs the command with bash, where there is one. It is never a part of this text.
_SHELL: Final = 'if command -v bash >/dev/null; then exec bash -c "$1"; else exec sh -c "$1"; fi'


async def run_shell(command: str, seconds: int) -> str:
    """
    Run a command line in the workspace; return its output, and how it ended.

    :raises SandboxError: if it cannot be run
    """
    check_argument("command", command)
    return await _run(["/bin/sh", "-c", _SHELL, "sh", command], seconds=seconds)


async def run_python(code: str, seconds: int) -> str:
    """
    Run a script in the workspace; return its output, and how it ended.

    :raises SandboxError: if it cannot be run
    """
    check_argument("code", code)
    return await _run(["-I", "-u", "-X", "utf8", "-c", code], seconds=seconds, is_python=True)


def check_argument(name: str, text: str) -> None:
    """
    Reject what no process can be given.

    :raises SandboxError: saying what to do instead
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise SandboxError(
            f"{name} holds a character that is half of a pair: leave it out"
        ) from None
    if not text.strip():
        raise SandboxError(f"{name} is empty")
    if "\0" in text:
        raise SandboxError(f"{name} holds the character NUL: leave it out")
    if size > _LONGEST:
        raise SandboxError(
            f"{name} has {size:,} bytes, and {_LONGEST:,} are allowed: write it to a file, "
            "and run that"
        )


async def _run(argv: Sequence[str], *, seconds: int, is_python: bool = False) -> str:
    context = get_turn_context()
    if context is None:
        raise SandboxError("commands run in turns only")
    found = await find_sandbox(context)
    sandbox, policy = found.choice.require_sandbox(), found.policy
    readable: Sequence[Path] = ()
    if is_python:
        program, readable = _find_python(policy.level)
        argv = [program, *argv]
    if seconds > 0:
        limit = min(float(seconds), policy.limits.seconds)
        policy = replace(policy, limits=replace(policy.limits, seconds=limit))
    request = policy.make_request(context.scope, session=context.session, readable=readable)
    return describe_result(await run_command(argv, request, sandbox))


def _find_python(level: str) -> tuple[str, Sequence[Path]]:
    """Return the interpreter, and what a command must be able to read for it."""
    if level == "box":
        return "python3", ()
    python = find_python()
    return str(python.executable), python.readable


def describe_result(done: CommandResult) -> str:
    """Return a result for the model: plain text, and the end of the command in words."""
    text = clean_output(done.output)
    said = [done.ending, f"{done.seconds:.1f} s"]
    if not text.strip():
        said.append("no output")
    ending = f"[{', '.join(said)}]"
    if done.notice is not None:
        ending += f"\n[{done.notice}]"
    return f"{text.rstrip()}\n{ending}" if text.strip() else ending


def clean_output(text: str) -> str:
    """Return output as one reads it on a terminal, without colours and movements."""
    lines = text.replace("\r\n", "\n").split("\n")
    # A progress bar writes over its line.
    return strip_sequences("\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines))
