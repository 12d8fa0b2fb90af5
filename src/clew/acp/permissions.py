"""Open questions about tool calls, as an editor asks them; what is shown is what runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from acp.schema import (
    AllowedOutcome,
    PermissionOption,
    RequestPermissionRequest,
    ToolCallUpdate,
)

from clew.acp import tool_calls
from clew.core.escapes import make_visible
from clew.wire.params import RespondParams

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from acp.schema import RequestPermissionResponse

    from clew.wire.models import ApprovalShape

_ONCE: Final = "once"
_HOUR: Final = "hour"
_ALWAYS: Final = "always"
_DENY: Final = "deny"


def build_request(
    session: str, question: ApprovalShape, *, call: str | None, workspace: str
) -> RequestPermissionRequest:
    """Return the request for an open question; ``call`` is its tool call in the session."""
    return RequestPermissionRequest(
        session_id=session,
        tool_call=ToolCallUpdate(
            # A question of a sub-agent is about a call of another conversation.
            tool_call_id=call or question.id,
            title=tool_calls.title_of(question.tool, question.args),
            kind=tool_calls.kind_of(question.tool),
            status="pending",
            raw_input=tool_calls.parse_arguments(question.args),
            content=[
                tool_calls.text_content(_describe_call(question)),
                *tool_calls.find_changes(question.tool, question.args, workspace=workspace),
            ],
        ),
        options=_list_options(question),
    )


def _describe_call(question: ApprovalShape) -> str:
    """Return the call to the letter, the preview of what it does, and why it is asked about."""
    call = f"{make_visible(question.tool)}({make_visible(question.args)})"
    preview = "" if question.preview is None else f"\n\n{make_visible(question.preview)}"
    why = "" if question.why is None else f"\n\n(asked because {make_visible(question.why)})"
    return f"{call}{preview}{why}"


def _list_options(question: ApprovalShape) -> list[PermissionOption]:
    options = [PermissionOption(option_id=_ONCE, name="Allow once", kind="allow_once")]
    if question.offer is not None:
        offer = make_visible(question.offer)
        options += [
            PermissionOption(
                option_id=_HOUR, name=f"Allow for an hour here: {offer}", kind="allow_always"
            ),
            PermissionOption(option_id=_ALWAYS, name=f"Always allow: {offer}", kind="allow_always"),
        ]
    return [*options, PermissionOption(option_id=_DENY, name="Deny", kind="reject_once")]


def read_answer(
    question: ApprovalShape, response: RequestPermissionResponse
) -> RespondParams | None:
    """
    Return the decision of a person; ``None`` if the editor only closed the question.

    :raises ValueError: if it is none of the options
    """
    outcome = response.outcome
    if not isinstance(outcome, AllowedOutcome):
        return None
    if all(outcome.option_id != option.option_id for option in _list_options(question)):
        raise ValueError(f"the question has no option {outcome.option_id[:100]!r}")
    return _ANSWERS.get(outcome.option_id, _deny)(question.id)


def describe_unanswered(question: ApprovalShape) -> str:
    """Say that the editor gave no answer, and how a person can."""
    return (
        f"\n\n(The editor did not answer the question about {make_visible(question.tool)}, which "
        f"waits: send `/approve {question.id}` or `/deny {question.id}`, or answer it in another "
        "front.)\n\n"
    )


def _deny(approval: str) -> RespondParams:
    return RespondParams(approval=approval, approve=False)


_ANSWERS: Mapping[str, Callable[[str], RespondParams]] = {
    _ONCE: lambda approval: RespondParams(approval=approval, approve=True),
    _HOUR: lambda approval: RespondParams(approval=approval, approve=True, keep="hour"),
    _ALWAYS: lambda approval: RespondParams(approval=approval, approve=True, keep="always"),
}
