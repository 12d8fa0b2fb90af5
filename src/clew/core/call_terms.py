"""Terms of a call: what it would reach when a person is asked about it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.core.tool_facts import ToolFacts

#: Facts that are not about the reach of a call; its content is compared by its preview.
_OTHER_FACTS: Final = ("preview", "size", "untrusted_result")


class CallTerms(Record):
    """The place of a call and the reach that it declares; they belong to the question."""

    #: Level of the sandbox that commands of the turn run at.
    level: str
    workspace: str
    #: ``None`` if the tool declares none, or they are unknown.
    reach: Mapping[str, Any] | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> CallTerms:
        """
        Parse stored terms.

        :raises TypeError: if a key is not known
        """
        return cls(**json.loads(text))

    def find_difference(self, now: CallTerms) -> str | None:
        """Return how the call would differ from what was shown; ``None`` if it would not."""
        if self.level != now.level:
            return f"the sandbox level was {self.level}, and is {now.level} now"
        if self.workspace != now.workspace:
            return f"the workspace was {self.workspace}, and is {now.workspace} now"
        if self.reach is not None and self.reach != now.reach:
            return "it would reach something else"
        return None


def make_terms(facts: ToolFacts | None, *, level: str, workspace: str) -> CallTerms:
    """Return the terms of a call with these facts."""
    if facts is None:
        return CallTerms(level=level, workspace=workspace)
    told = {
        name: getattr(facts, name)
        for name in facts.__struct_fields__
        if name not in _OTHER_FACTS and name != "paths"
    }
    reach = {**told, "paths": [asdict(one) for one in facts.paths]}
    # As it is after a restart: lists, not tuples.
    return CallTerms(level=level, workspace=workspace, reach=json.loads(json.dumps(reach)))
