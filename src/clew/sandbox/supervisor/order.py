"""The order of a supervisor, and the files of its folder."""

from __future__ import annotations

from typing import Any, NamedTuple

#: The port of the proxy on the loopback of a command with named hosts.
PROXY_PORT = 3128
#: Descriptors that a process may have been given, and some more.
DESCRIPTORS = 65536
#: Held for as long as the supervisor lives: the kernel frees it, whatever ends it.
LOCK = "lock"
#: Exists once a command was to be started: it is never started again.
STARTED = "pid"
#: The end of the command, in JSON; it is there as a whole or not at all.
EXIT = "exit"
#: The reason to stop the command; it is there from the moment somebody asks for it.
STOP = "stop"
#: A named pipe for input of the command; an empty line has the supervisor look at ``STOP``.
INPUT = "in"
#: A named pipe that whoever waits for the command holds open: the command ends with it. Where there
#: is none, the command outlives whoever started it.
STARTER = "starter"
#: The output from a position on: ``out.0`` is its beginning, later ones are replaced.
OUTPUT_PREFIX = "out."


class SupervisorOrder(NamedTuple):
    """A command and its limits, as JSON has them."""

    argv: list[str]
    environment: dict[str, str]
    workspace: str
    seconds: float
    memory: int
    processes: int
    #: Bytes of output that are kept: the first half and the last.
    output: int
    disk: int
    #: The signal to the first process that ends all of them; ``None`` if none does.
    end_signal: int | None = None
    #: A command that ends what is not a process of this machine.
    ending: list[str] | None = None
    #: The socket of the proxy for a command with named hosts.
    proxy: str | None = None
    #: The command can be given input; else its input is empty.
    takes_input: bool = False


class CommandExit(NamedTuple):
    """The end of a command, as the kernel told it to its supervisor."""

    #: As the shell has it: 128 + N for a death by signal N.
    code: int
    #: The signal, if one ended it.
    signal: int | None
    #: Bytes of its output.
    size: int
    #: Milliseconds since the epoch.
    started: int
    ended: int
    #: Who ended it: ``person``, ``time``, ``limit``, ``memory``, ``error``; ``None``: it itself.
    by: str | None = None
    #: The sentence for that.
    why: str | None = None
    #: An additional remark: that the workspace is full.
    notice: str | None = None


def parse_exit(fields: dict[str, Any]) -> CommandExit:
    """Return the end that a supervisor wrote; it may be of another version."""
    return CommandExit(**{key: fields[key] for key in CommandExit._fields if key in fields})
