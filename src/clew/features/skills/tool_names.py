"""Tools as skills name them: ``allowed-tools`` of Claude and others, in our words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, cast

from clew.core.command_shape import CommandPattern
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Their names, in lower case, and the tools that do the same here.
_OURS: Final = {
    **dict.fromkeys(("bash", "shell", "exec", "terminal", "run_command"), ("shell",)),
    **dict.fromkeys(("python", "run_python", "execute_code"), ("run_python",)),
    **dict.fromkeys(("read", "read_file", "cat"), ("read_file",)),
    **dict.fromkeys(("write", "write_file", "create"), ("write_file",)),
    **dict.fromkeys(
        ("edit", "edit_file", "multiedit", "patch", "apply_patch", "str_replace"), ("edit_file",)
    ),
    **dict.fromkeys(("glob", "ls", "list_files"), ("list_files",)),
    **dict.fromkeys(("grep", "search_files"), ("search_files",)),
    **dict.fromkeys(("webfetch", "web_fetch", "web_extract"), ("web_fetch",)),
    **dict.fromkeys(("websearch", "web_search"), ("web_search",)),
    **dict.fromkeys(("task", "agent", "delegate", "delegate_task"), ("delegate",)),
    **dict.fromkeys(("bashoutput", "killbash", "killshell", "process"), ("process",)),
    "skill": ("load_skill",),
}
#: ``Bash(git add:*)``, ``Read``, ``mcp__github__*``.
_ENTRY: Final = re.compile(r"([A-Za-z][\w.*-]*)(?:\(([^()]*)\))?")
#: Tools whose argument in parentheses is a command.
_COMMANDS: Final = ("shell",)
#: Entries of one skill.
_MOST: Final = 100


class AllowedTool(Record):
    """A tool that a skill lists, as it is written there."""

    text: str
    #: Ours; ``None`` if there is none of that name that we know.
    tool: str | None
    #: The pattern that a command must match, as ``git add *``; ``None`` for every call.
    command: str | None = None


def parse_allowed_tools(value: object) -> tuple[AllowedTool, ...]:
    """Return the tools of a list, or of a text with commas or spaces between them."""
    given = cast("list[object]", value) if isinstance(value, list) else [value]
    texts = [one for one in given if isinstance(one, str)]
    found = (made for text in texts for made in _parse(text))
    return tuple(dict.fromkeys(found))[:_MOST]


def _parse(text: str) -> Iterator[AllowedTool]:
    for entry in _ENTRY.finditer(text):
        name, argument = entry[1], (entry[2] or "").strip()
        tools = _OURS.get(name.lower(), (_find_unmapped(name),))
        for tool in tools:
            if argument in ("", "*"):
                yield AllowedTool(text=entry[0], tool=tool)
            elif tool in _COMMANDS and (pattern := _read_pattern(argument)):
                yield AllowedTool(text=entry[0], tool=tool, command=pattern)
            else:
                # A part of its calls, which nothing here can tell from others.
                yield AllowedTool(text=entry[0], tool=None)


def _find_unmapped(name: str) -> str | None:
    """Return a name that may be a tool of ours, such as one of a plugin."""
    return name if re.fullmatch(r"[a-z][a-z0-9_]*", name) else None


def _read_pattern(argument: str) -> str | None:
    """Return ``git add:*`` as ``git add *``; ``None`` for what is no pattern."""
    command = argument.removesuffix(":*")
    pattern = f"{command} *" if command != argument else argument
    try:
        CommandPattern.parse(pattern)
    except ValueError:
        return None
    return pattern
