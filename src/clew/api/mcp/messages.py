"""``send_message``: a message that is stored once, and its answer if it comes in time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from clew.api.mcp.tools import DEFAULT_WAIT, MAX_WAIT
from clew.wire.errors import RETRYABLE_CODES, CallFailed, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from clew.api.mcp.operation_client import OperationClient

    #: Gets the seconds that have passed, those that there are, and the state.
    Report = Callable[[float, float, str], Awaitable[None]]

#: Seconds between two reports of progress: a client that hears nothing gives up.
_STEP: Final = 5
_WAIT_ON: Final = "call send_message again with the same conversation, text and key to wait on"
_NEXT: Final[Mapping[str, str]] = {
    "stored": f"the connection to the gateway was lost; {_WAIT_ON}",
    "queued": f"an earlier message is being answered; {_WAIT_ON}",
    "running": f"it is being answered; {_WAIT_ON}",
    "waiting": f"a person must allow the calls in approvals; then {_WAIT_ON}",
}


async def send_message(
    client: OperationClient, params: Mapping[str, Any], report: Report
) -> dict[str, Any]:
    """
    Store a message, and return its answer, or what keeps it after the wait.

    :raises CallFailed: if it was not stored
    """
    given = dict(params)
    wait = _parse_wait(given.pop("wait", DEFAULT_WAIT))
    key = given["key"] = given.get("key") or uuid4().hex
    submitted = await client.call("prompt.submit", given)
    answer = await _wait_for_answer(client, submitted, wait, report)
    if answer["state"] in _NEXT:
        answer["next"] = _NEXT[answer["state"]]
    return {**answer, "key": key}


def _parse_wait(given: object) -> int:
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= MAX_WAIT:
        return given
    message = f"wait: a whole number from 0 to {MAX_WAIT}"
    raise CallFailed.from_code(ErrorCode.INVALID_PARAMS, message, param="wait")


async def _wait_for_answer(
    client: OperationClient, submitted: Mapping[str, Any], wait: int, report: Report
) -> dict[str, Any]:
    clock = asyncio.get_running_loop().time
    began = clock()
    while True:
        left = began + wait - clock()
        asked = {"inbox_id": submitted["inbox_id"], "seconds": max(0, min(_STEP, round(left)))}
        try:
            answer = await client.call("prompt.wait", asked)
        except CallFailed as error:
            if error.code not in {*RETRYABLE_CODES, ErrorCode.DISCONNECTED}:
                raise
            # Only the wait has failed: the message is stored.
            names = ("inbox_id", "conversation")
            return {"state": "stored", **{name: submitted[name] for name in names}}
        if answer["state"] in {"waiting", "done"} or left <= _STEP:
            return answer
        await report(clock() - began, wait, answer["state"])
