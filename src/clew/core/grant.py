"""Grants: permissions of a person for more than one call, and their reach."""

from __future__ import annotations

import enum
import json
from dataclasses import asdict
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from clew.core.command_shape import ANY, CommandPattern, matches_glob
from clew.core.grant_suggestion import suggest_pattern
from clew.record import Record

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.command_shape import ParsedCommand
    from clew.core.ids import ApprovalId, ConversationId, GrantId
    from clew.core.scope import Scope
    from clew.core.tool_facts import PathFact, ToolFacts

#: Sandbox levels without isolation.
_OPEN_LEVELS: Final = (None, "host")


class GrantPattern(Record):
    """
    The calls that a grant covers; made from the call that was shown.

    A call that reaches further in any way (another command, host, folder or sandbox, a
    write instead of a read, a message instead of a look) is not covered.
    """

    tool: str
    commands: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    #: Folders; the files in them are covered, those in folders below them are not.
    folders: tuple[str, ...] = ()
    #: Folders with everything below them.
    trees: tuple[str, ...] = ()
    writes: bool = False
    outward: bool = False
    network: bool = False
    sandbox: str | None = None

    @property
    def says(self) -> str:
        """Return the text that is shown to a person."""
        parts = [
            *(f"`{one}`" for one in self.commands),
            *(f"on {one}" for one in self.hosts),
            *(f"{'writing' if self.writes else 'reading'} in {one}" for one in self.folders),
            *(f"reading everything below {one}" for one in self.trees),
        ]
        what = ", ".join(parts) if parts else "any call"
        where = f" ({self._place})" if self.commands else ""
        return f"{self.tool}: {what}{where}"

    @property
    def _place(self) -> str:
        if self.sandbox in _OPEN_LEVELS:
            return "outside of the sandbox"
        return "with the network" if self.network else "in the sandbox"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> GrantPattern:
        """
        Parse a stored pattern.

        :raises ValueError: if a key or value is not known
        """
        values: dict[str, Any] = json.loads(text)
        for name in ("commands", "hosts", "folders", "trees"):
            values[name] = tuple(values.get(name, ()))
        try:
            return cls(**values)
        except TypeError as error:
            raise ValueError(f"not the pattern of a grant: {error}") from error

    def covers(self, tool: str, facts: ToolFacts | None, shape: ParsedCommand | None) -> bool:
        """Return whether a call is covered; ``facts`` are ``None`` where a tool has none."""
        if tool != self.tool:
            return False
        if facts is None:
            return not (self.commands or self.hosts or self.folders or self.trees)
        return self._allows_reach(facts) and self._covers_parts(facts, shape)

    def _allows_reach(self, facts: ToolFacts) -> bool:
        return (
            facts.sandbox == self.sandbox
            and facts.network <= self.network
            and facts.outward <= self.outward
            and any(one.writes for one in facts.paths) <= self.writes
            and not facts.cost_micros
        )

    def _covers_parts(self, facts: ToolFacts, shape: ParsedCommand | None) -> bool:
        if (facts.command is None) == bool(self.commands):
            return False
        if bool(facts.hosts) != bool(self.hosts):
            return False
        if bool(facts.paths) != bool(self.folders or self.trees):
            return False
        return (
            (facts.command is None or covers_command(self.commands, facts, shape))
            and all(host in self.hosts for host in facts.hosts)
            and all(map(self._covers_path, facts.paths))
        )

    def _covers_path(self, fact: PathFact) -> bool:
        if any(PurePosixPath(fact.path).is_relative_to(one) for one in self.trees):
            return True
        return fact.extent != "tree" and get_folder(fact) in self.folders


class GrantTerm(enum.Enum):
    """Duration of an answer, beyond the call that it is about."""

    HOUR = "hour"  #: in this conversation
    ALWAYS = "always"  #: in this scope, until it is revoked


#: The terms by the words with which people choose them.
GRANT_TERMS: Final = {term.value: term for term in GrantTerm}


class Grant(Record):
    """A person's permission for calls like one that they were shown."""

    id: GrantId
    scope: Scope
    #: Only there; ``None`` for all of the scope.
    conversation_id: ConversationId | None
    pattern: GrantPattern
    by: str
    from_approval: ApprovalId | None
    created_at: datetime
    #: ``None`` for never.
    expires_at: datetime | None
    #: ``None`` for any number.
    uses_left: int | None = None
    revoked_at: datetime | None = None


def make_pattern(
    tool: str, facts: ToolFacts | None, shape: ParsedCommand | None
) -> GrantPattern | None:
    """Return the pattern to offer for a call; ``None`` if it can only be allowed once."""
    if facts is None:
        return GrantPattern(tool=tool)
    commands: tuple[str, ...] = ()
    if facts.command is not None:
        suggested = _suggest_commands(facts, shape)
        if suggested is None:
            return None
        commands = suggested
    made = GrantPattern(
        tool=tool,
        commands=commands,
        hosts=tuple(dict.fromkeys(facts.hosts)),
        folders=_list_places(facts, trees=False),
        trees=_list_places(facts, trees=True),
        writes=any(one.writes for one in facts.paths),
        outward=facts.outward,
        network=facts.network,
        sandbox=facts.sandbox,
    )
    # An offered pattern must match the call itself.
    return made if made.covers(tool, facts, shape) else None


def _list_places(facts: ToolFacts, *, trees: bool) -> tuple[str, ...]:
    places = (get_folder(one) for one in facts.paths if (one.extent == "tree") == trees)
    return tuple(dict.fromkeys(places))


def _suggest_commands(facts: ToolFacts, shape: ParsedCommand | None) -> tuple[str, ...] | None:
    if shape is None or shape.problem is not None or not may_redirect(facts, shape):
        return None
    found = [suggest_pattern(command) for command in shape.commands]
    suggested = [one for one in found if one is not None]
    return tuple(dict.fromkeys(suggested)) if len(suggested) == len(found) else None


def covers_command(
    patterns: tuple[str, ...], facts: ToolFacts, shape: ParsedCommand | None
) -> bool:
    """Return whether each command of a plain list matches one of the patterns."""
    if shape is None or shape.problem is not None or not may_redirect(facts, shape):
        return False
    parsed = [CommandPattern.parse(one) for one in patterns]
    return all(any(one.matches(command) for one in parsed) for command in shape.commands)


def may_redirect(facts: ToolFacts, shape: ParsedCommand) -> bool:
    """Return whether the files of all redirections lie in the workspace."""
    if not shape.redirects:
        return True
    return facts.sandbox not in _OPEN_LEVELS and all(map(_is_below, shape.redirects))


def _is_below(target: str) -> bool:
    path = PurePosixPath(target)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def get_folder(fact: PathFact) -> str:
    """Return the folder that a path is, or that its file is in."""
    return fact.path if fact.extent != "file" else str(PurePosixPath(fact.path).parent)


def matches_path(pattern: str, path: str) -> bool:
    """
    Return whether a path fits a pattern, in which ``*`` stands for any characters.

    A pattern that is not absolute is compared with the end of the path.
    """
    return matches_glob(pattern if pattern.startswith("/") else f"*/{pattern}", path)


def may_match_below(pattern: str, folder: str) -> bool:
    """Return whether a path below a folder may fit a pattern."""
    fixed, below = pattern.partition(ANY)[0], f"{folder.rstrip('/')}/"
    return not pattern.startswith("/") or fixed.startswith(below) or below.startswith(fixed)
