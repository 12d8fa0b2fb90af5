"""``allowed-tools``: while a skill is loaded, calls that it does not list ask a person."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from clew.core.policy_rule import CallNarrowing
from clew.features.skills import loaded

if TYPE_CHECKING:
    from clew.features.skills.loaded import LoadedSkill
    from clew.plugin import TurnContext
    from clew.store.contract import Tx

#: What reads skills and earlier results; a skill need not list it.
_ALWAYS: Final = (("load_skill", None), ("read_result", None))


def find_narrowings(t: Tx, context: TurnContext) -> list[CallNarrowing]:
    """Return what the loaded skills of a conversation list; each of them narrows."""
    found = loaded.list_loaded(t, context.conversation)
    return [_make_narrowing(one, one.tools) for one in found if one.tools is not None]


def _make_narrowing(one: LoadedSkill, tools: str) -> CallNarrowing:
    listed = [(tool, command) for tool, command in json.loads(tools)]
    return CallNarrowing(says=f"the skill {one.name}", calls=(*_ALWAYS, *listed))
