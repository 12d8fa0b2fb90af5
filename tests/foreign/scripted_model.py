"""
The model behind the programs that generate samples: it does what each prompt says.

A prompt may hold a plan, ``<<[STEP, …]>>``: a step is a list of ``[TOOL, ARGUMENTS]`` that are
called in parallel, a text, or ``{"hang": true}``. After the last step the model says that it is
done, and without a plan it repeats the prompt.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, cast

from clew.testing.provider.replies import Calls, Hang, ReplyUsage, ScriptedCall, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.testing.provider.replies import Reply
    from clew.testing.provider.request import ProviderRequest

_PLAN = re.compile(r"<<(\[.*?\])>>", re.DOTALL)
_STEP_OF_ID = re.compile(r"s(\d+)i\d+")
USAGE = ReplyUsage(input=1200, output=34, cached=600)


def follow_plan(request: ProviderRequest) -> Reply:
    """Return the step of the newest plan that is due."""
    plan: list[Any] = []
    done = 0
    for message in request.messages:
        found = [_PLAN.findall(text) for text in message.texts] if message.role == "user" else []
        if plans := [one for some in found for one in some]:
            plan, done = _read_plan(plans[-1]), 0
        for result in message.results:
            if step := _STEP_OF_ID.search(result.call_id):
                done = max(done, int(step[1]) + 1)
    if not request.tools:
        return Text("A short title or summary", usage=USAGE)
    if done >= len(plan):
        words = " ".join(_PLAN.sub("", request.last_user_text).split())[-60:]
        return Text(f"Done: {words}", usage=USAGE)
    return _take_step(plan[done], f"call{request.number}s{done}i")


def _take_step(step: object, prefix: str) -> Reply:
    if isinstance(step, str):
        return Text(step, thinking="Nothing is left to do.", usage=USAGE)
    if isinstance(step, dict):
        return Hang()
    calls = cast("Sequence[tuple[str, dict[str, object]]]", step)
    return Calls(
        [
            ScriptedCall(name, arguments, id=f"{prefix}{index}")
            for index, (name, arguments) in enumerate(calls)
        ],
        text="I look first.",
        thinking="The tools will tell.",
        usage=USAGE,
    )


def _read_plan(text: str) -> list[Any]:
    # OpenCode quotes a prompt that has spaces.
    plain = text if text.startswith('[[["') else text.replace('\\"', '"')
    return cast("list[Any]", json.loads(plain))
