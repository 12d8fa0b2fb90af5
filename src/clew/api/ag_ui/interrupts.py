"""Approvals as interrupts: the questions in a run's end, and their answers in the next run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.api.problems import Problem, ProblemError, invalid_request
from clew.core.approval import ApprovalState, escape_invisible
from clew.core.grant import GRANT_TERMS
from clew.core.ids import ApprovalId
from clew.errors import NotFound
from clew.record import Record
from clew.wire.serializers import format_timestamp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.api.ag_ui.request import InterruptAnswer
    from clew.api.http_call import HttpCall
    from clew.core.approval import Approval
    from clew.core.ids import ConversationId, InboxId


class FollowedInput(Record):
    """An input whose turn a run shows."""

    inbox_id: InboxId
    #: The seq after which its messages are new; ``None`` for the whole turn.
    after: int | None = None


def build_interrupt(approval: Approval) -> dict[str, Any]:
    """Return an approval as an interrupt: the whole call, to the letter."""
    why = "" if approval.why is None else f" (asked because {approval.why})"
    told = {
        "tool": approval.tool,
        "args": approval.args,
        "why": approval.why,
        "offer": approval.offer and approval.offer.says,
        "preview": approval.preview,
    }
    return {
        "id": approval.id,
        "reason": "tool_call",
        "message": f"The agent wants to run {approval.tool} with "
        f"{escape_invisible(approval.args)}{escape_invisible(why)}",
        "toolCallId": approval.call_id,
        "responseSchema": _build_schema(approval),
        "expiresAt": format_timestamp(approval.expires_at),
        "metadata": {name: value for name, value in told.items() if value is not None},
    }


def _build_schema(approval: Approval) -> dict[str, Any]:
    fields: dict[str, Any] = {"approved": {"type": "boolean"}, "note": {"type": "string"}}
    if approval.offer is not None:
        fields["keep"] = {"type": "string", "enum": list(GRANT_TERMS)}
    return {
        "type": "object",
        "properties": fields,
        "required": ["approved"],
        "additionalProperties": False,
    }


async def answer_interrupts(
    call: HttpCall, answers: Sequence[InterruptAnswer], conversation: ConversationId | None
) -> list[FollowedInput]:
    """
    Answer the approvals of a conversation, and return what goes on with them.

    The same answers again change nothing. If one cannot be given, none is.

    :raises NotFound: if there is no such approval in the conversation
    :raises ProblemError: if one was answered otherwise, has expired, or cannot be kept
    """
    asked = [await _find_question(call, one, conversation) for one in answers]
    for one, question in zip(answers, asked, strict=True):
        if question.state is ApprovalState.OPEN:
            await call.engine.answer_approval(
                question.id,
                yes=one.yes,
                by=call.context.viewer,
                note=one.note,
                keep=one.keep,
            )
    found = [await call.engine.runs.find_asking_input(one) for one in asked]
    first: dict[InboxId, int] = {}
    for inbox_id, seq in found:
        first[inbox_id] = min(seq, first.get(inbox_id, seq))
    return [FollowedInput(inbox_id=inbox_id, after=seq) for inbox_id, seq in first.items()]


async def _find_question(
    call: HttpCall, answer: InterruptAnswer, conversation: ConversationId | None
) -> Approval:
    found = await call.engine.get_approval(ApprovalId(answer.approval))
    if found.conversation_id != conversation:
        raise NotFound("approval", answer.approval)
    if answer.keep is not None and found.offer is None:
        raise invalid_request(
            f"{answer.approval}: this call can only be allowed once", param="resume"
        )
    given = ApprovalState.APPROVED if answer.yes else ApprovalState.DENIED
    # What has expired, or was denied, may be abandoned.
    is_moot = not answer.yes and found.state is ApprovalState.EXPIRED
    if found.state in (ApprovalState.OPEN, given) or is_moot:
        return found
    raise ProblemError(
        Problem(
            status=409,
            message=f"{answer.approval}: too late, the question was answered otherwise or its time "
            f"is over ({found.state.value})",
            code="conflict",
        )
    )


async def require_answers(
    call: HttpCall, answers: Sequence[InterruptAnswer], conversation: ConversationId | None
) -> None:
    """
    Check that a new message leaves no approval behind.

    :raises ProblemError: if one would stay open: the message would wait behind it
    """
    if conversation is None:
        return
    given = {one.approval for one in answers}
    left = [one for one in await call.engine.list_approvals(conversation) if one.id not in given]
    if left:
        named = ", ".join(f"{one.id} ({one.tool})" for one in left)
        raise ProblemError(
            Problem(
                status=409,
                message=f"resume: calls of tools wait for an answer: {named}; answer each of them, "
                "or cancel it, in the run with the new message",
                code="approval_required",
                param="resume",
            )
        )
