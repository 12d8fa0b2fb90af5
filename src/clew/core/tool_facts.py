"""Facts about one tool call, from which it is decided whether the call may run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal

from clew.record import Record

#: The sandbox level at which a command writes nothing.
READ_ONLY_LEVEL: Final = "read"
#: Sandbox levels at which a command reaches neither the network nor files outside of its workspace.
CONFINED_LEVELS: Final = ("read", "work", "box")


class PathFact(Record):
    """Path that a call reads or writes."""

    #: Absolute, with symbolic links resolved.
    path: str
    #: True if it lies in the workspace.
    inside: bool
    writes: bool = False
    #: Writes all of the content: nothing of what was there stays.
    replaces: bool = False
    #: What is used at the path: a file, the names in a folder, or everything below it.
    extent: Literal["file", "folder", "tree"] = "file"
    #: The call leaves out each file below the path that a rule denies or asks about.
    leaves_out: bool = False


class ToolFacts(Record):
    """
    Facts about one call, made from its arguments before it runs.

    A tool that declares facts but cannot make them (it raises, takes too long, or returns
    ``None``) is always asked about.
    """

    paths: tuple[PathFact, ...] = ()
    #: Hosts that the call contacts, as ``example.org``.
    hosts: tuple[str, ...] = ()
    #: Shell command that the call runs.
    command: str | None = None
    #: Level of the sandbox that it runs in; ``None``: in none.
    sandbox: str | None = None
    #: The code that it runs can reach the network.
    network: bool = False
    #: It changes only what Clew itself keeps of the turn's scope.
    internal: bool = False
    #: An operator trusts whatever it does: it needs no question by default.
    trusted: bool = False
    #: Later sessions read what it writes, so text of strangers would outlive its conversation.
    lasting: bool = False
    #: Bytes that it writes or sends.
    size: int | None = None
    #: Cost in millionths of a dollar.
    cost_micros: int | None = None
    #: It can send data to the outside: a message, a POST, a shell with the network.
    outward: bool = False
    #: Its result contains text that strangers may have written.
    untrusted_result: bool = False
    #: Shown with the question, such as the diff of a write. What takes time to make is a
    #: function, which is called only if the call is asked about.
    preview: str | Callable[[], str | None] | None = None


#: Makes the facts from the call's arguments; runs inside the turn, without side effects.
FactsFunction = Callable[[Mapping[str, Any]], ToolFacts | Awaitable[ToolFacts | None] | None]
