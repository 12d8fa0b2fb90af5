"""Texts about processes, for the model and for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.agent.known_secrets import redact_secrets
from clew.core.escapes import strip_sequences
from clew.features.shell.processes import ProcessState
from clew.sandbox.runner import describe_exit

if TYPE_CHECKING:
    from clew.features.shell.processes import ProcessEnd, ShellProcess

#: Characters of a command in a line.
_LONGEST_COMMAND: Final = 200
#: Characters of the output that a completion repeats.
TAIL: Final = 2_000
LOST: Final = (
    "lost: the machine or its container restarted, or its supervisor was killed; "
    "what it has done is unknown"
)


def clean_output(text: str) -> str:
    """Return output as one reads it on a terminal, without colours and movements."""
    lines = text.replace("\r\n", "\n").split("\n")
    # A progress bar writes over its line.
    return strip_sequences("\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines))


def describe_end(end: ShellProcess | ProcessEnd) -> str:
    """Return the end of a process in words: no two kinds of end have the same."""
    if end.state is ProcessState.LOST:
        return LOST
    if end.why is not None:
        return end.why
    return describe_exit(end.exit_code or 0)


def format_result(end: ShellProcess | ProcessEnd, output: str) -> str:
    """Return a result for the model: plain text, and the end of the command in words."""
    text = clean_output(output)
    said = [describe_end(end)]
    if end.started_at is not None and end.ended_at is not None:
        said.append(f"{(end.ended_at - end.started_at) / 1000:.1f} s")
    if not text.strip():
        said.append("no output")
    ending = f"[{', '.join(said)}]"
    if end.notice is not None:
        ending += f"\n[{end.notice}]"
    return f"{text.rstrip()}\n{ending}" if text.strip() else ending


def format_unfinished(process: ShellProcess, output: str, *, asked: bool) -> str:
    """Return a result for the model: the command goes on."""
    begun = "running in the background" if asked else "still running, in the background from now on"
    place = "" if not output else f"{clean_output(output).rstrip()}\n"
    return f"{place}[{begun}, as {process.id}: you will be told its end]"


def format_completion(process: ShellProcess, end: ProcessEnd) -> str:
    """Return what the model is told when a process in the background has ended."""
    result = format_result(end, end.tail or "")
    text = f"The command {shorten_command(process.command)} ({process.id}) has ended.\n{result}"
    if end.size is not None and end.size > len((end.tail or "").encode()):
        text += f"\n[the end of {end.size:,} bytes of output; process read shows more]"
    return redact_secrets(text)


def shorten_command(command: str) -> str:
    """Return a command in one line."""
    line = redact_secrets(" ".join(command.split()))
    return repr(line if len(line) <= _LONGEST_COMMAND else f"{line[:_LONGEST_COMMAND]}…")
