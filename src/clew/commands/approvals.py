"""Chat commands about tool calls: answer questions, list grants, tell why a call ran."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import structlog

from clew.commands.arguments import parse_number
from clew.core import scope as scopes
from clew.core.approval import fits_in_chat
from clew.core.grant import GRANT_TERMS, GrantTerm
from clew.core.ids import GrantId
from clew.errors import InvalidTransition, NotFound, UsageError
from clew.record import Record
from clew.wording import NOT_ALLOWED_NOTICE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.commands.registry import ChatCommandReply, CommandContext
    from clew.core.approval import NumberedApproval
    from clew.core.grant import Grant
    from clew.core.journal import JournaledCall

log = structlog.get_logger(__name__)

#: Calls that ``/why`` lists, and characters of each one's arguments.
_CALLS_LISTED: Final = 10
_MAX_ARGS_LENGTH: Final = 100
_WHICH: Final = re.compile(r"(?:\d+|all|apr_\w+)")


class _Answer(Record):
    """Arguments of ``/approve`` or ``/deny``."""

    #: A number, an id, ``all``, or "" where only one question waits.
    which: str
    keep: GrantTerm | None = None
    note: str | None = None


async def approve_calls(ctx: CommandContext, argument: str) -> ChatCommandReply:
    *rest, last = argument.split() or [""]
    keep = GRANT_TERMS.get(last)
    which = argument if keep is None else " ".join(rest)
    return await _answer_questions(ctx, _Answer(which=which, keep=keep), yes=True)


async def deny_calls(ctx: CommandContext, argument: str) -> ChatCommandReply:
    first, _, rest = argument.partition(" ")
    which, note = (first, rest) if _WHICH.fullmatch(first) else ("", argument)
    answer = _Answer(which=which, note=note.strip() or None)
    return await _answer_questions(ctx, answer, yes=False)


async def _answer_questions(ctx: CommandContext, answer: _Answer, *, yes: bool) -> ChatCommandReply:
    questions, others = ((), 0) if ctx.conversation_id is None else await _list_questions(ctx)
    if others and ctx.who is not None:
        log.warning("approval_answer_refused", user=ctx.who.user, reason="not allowed")
    if not questions:
        return ctx.reply(
            NOT_ALLOWED_NOTICE if others else "Nothing is waiting for your approval here."
        )
    word = "approve" if yes else "deny"
    if ctx.from_program and not answer.which.startswith("apr_"):
        # Nothing tells what the program had shown when its person wrote this.
        raise UsageError(
            f"nothing was answered: name the question by its id, {_list_ways(questions, word)}"
        )
    chosen = _select_questions(questions, answer.which, word=word)
    if answer.keep is not None:
        _require_offers(chosen)
    for each in chosen:
        try:
            await ctx.engine.answer_approval(
                each.approval.id,
                yes=yes,
                by=_identify_writer(ctx),
                note=answer.note,
                keep=answer.keep,
            )
        except InvalidTransition:
            raise UsageError(
                f"too late: question {each.number} was answered, or its time is over"
            ) from None
    done = "Allowed" if yes else "Refused"
    named = ", ".join(each.approval.tool for each in chosen)
    left = len(questions) - len(chosen)
    kept = "" if answer.keep is None else f" {_describe_kept(chosen, answer.keep)}"
    return ctx.reply(f"{done}: {named}.{kept}" + (f" {left} more wait." if left else ""))


def _require_offers(chosen: Sequence[NumberedApproval]) -> None:
    for each in chosen:
        if each.approval.offer is None:
            raise UsageError(
                f"question {each.number} can only be allowed once: "
                f"{each.approval.why or 'nothing else was offered'}"
            )


def _describe_kept(chosen: Sequence[NumberedApproval], keep: GrantTerm) -> str:
    patterns = {each.approval.offer.says for each in chosen if each.approval.offer is not None}
    term = "For an hour, here" if keep is GrantTerm.HOUR else "From now on"
    return f"{term}: {'; '.join(sorted(patterns))}. /grants lists what is allowed."


def _identify_writer(ctx: CommandContext) -> str:
    who = ctx.who
    return ctx.viewer if who is None else f"{who.account.channel}:{who.user}"


async def _list_questions(ctx: CommandContext) -> tuple[Sequence[NumberedApproval], int]:
    """Return the open questions that the writer may answer, and the number of others here."""
    if ctx.who is not None and ctx.route is not None:
        return await ctx.engine.channel_inbox.list_questions(
            ctx.required_conversation, who=ctx.who, route=ctx.route, written=ctx.written
        )
    asked = await ctx.engine.list_questions(ctx.required_conversation)
    if ctx.viewer == scopes.LOCAL:
        return asked, 0
    here = None if ctx.route is None else ctx.route.key
    return [
        one for one in asked if one.approval.route in (None, here) and fits_in_chat(one.approval)
    ], 0


def _select_questions(
    questions: Sequence[NumberedApproval], argument: str, *, word: str
) -> Sequence[NumberedApproval]:
    if argument.startswith("apr_"):
        return [_find_question(questions, argument)]
    fitting = [one for one in questions if argument in ("", "all", str(one.number))]
    if fitting and not any(one.was_seen for one in fitting):
        ways = _list_ways(fitting, word)
        raise UsageError(f"nothing was answered: a question came after you wrote this: {ways}")
    questions = [one for one in questions if one.was_seen]
    if argument == "all" or (not argument and len(questions) == 1):
        return questions
    listed = ", ".join(f"{one.number} ({one.approval.tool})" for one in questions)
    if not argument:
        raise UsageError(
            f"{len(questions)} questions wait, {listed}: /{word} {questions[0].number} answers "
            f"one, /{word} all answers them all"
        )
    place = parse_number(argument)
    chosen = [one for one in questions if one.number == place]
    if not chosen:
        raise UsageError(f"there is no question {place} that waits; these do: {listed}")
    if len(chosen) > 1:
        ways = _list_ways(chosen, word)
        raise UsageError(f"{len(chosen)} questions of several turns are number {place}: {ways}")
    return chosen


def _list_ways(questions: Sequence[NumberedApproval], word: str) -> str:
    return ", ".join(f"/{word} {one.approval.id} ({one.approval.tool})" for one in questions)


def _find_question(questions: Sequence[NumberedApproval], id_: str) -> NumberedApproval:
    for one in questions:
        if one.approval.id == id_:
            return one
    raise UsageError(f"no question {id_} waits here: it was answered, or has expired")


async def list_grants(ctx: CommandContext, argument: str) -> ChatCommandReply:
    found = await ctx.engine.grants.list_grants(viewer=ctx.viewer)
    if not found:
        return ctx.reply("Nothing is allowed for longer than one call.")
    lines = [f"{n}. {_format_grant(one)}" for n, one in enumerate(found, 1)]
    return ctx.reply("\n".join([*lines, "/revoke N takes one back."]))


def _format_grant(grant: Grant) -> str:
    until = "always" if grant.expires_at is None else f"until {grant.expires_at:%Y-%m-%d %H:%M} UTC"
    where = "" if grant.conversation_id is None else f" in {grant.conversation_id}"
    return (
        f"{grant.pattern.says}, {until}{where}, by {grant.by} on {grant.created_at:%Y-%m-%d}, "
        f"{grant.id}"
    )


async def revoke_grant(ctx: CommandContext, argument: str) -> ChatCommandReply:
    if not argument:
        raise UsageError("/revoke N takes back what /grants lists under N; its id does as well")
    grant = GrantId(argument) if argument.startswith("grt_") else await _find_grant(ctx, argument)
    try:
        revoked = await ctx.engine.grants.revoke_grant(grant, viewer=ctx.viewer)
    except NotFound:
        raise UsageError(f"there is no {grant} here: /grants lists what is allowed") from None
    return ctx.reply(f"Taken back: {revoked.pattern.says}. Such calls ask again.")


async def _find_grant(ctx: CommandContext, argument: str) -> GrantId:
    place = parse_number(argument)
    found = await ctx.engine.grants.list_grants(viewer=ctx.viewer)
    if not 1 <= place <= len(found):
        raise UsageError(f"there is no {place} in /grants, which has {len(found)}")
    return found[place - 1].id


async def explain_calls(ctx: CommandContext, argument: str) -> ChatCommandReply:
    place = parse_number(argument) if argument else None
    limit = _CALLS_LISTED if place is None else place
    calls = await ctx.engine.grants.list_calls(ctx.required_conversation, limit=limit)
    if not calls:
        return ctx.reply("No tool was called here.")
    if place is None:
        count = len(calls)
        lines = [f"{count - n}. {_format_call(one)}" for n, one in enumerate(calls)]
        return ctx.reply("\n".join(lines))
    if len(calls) < place:
        raise UsageError(f"there were only {len(calls)} calls here")
    return ctx.reply(_format_call(calls[0], whole=True))


def _format_call(call: JournaledCall, *, whole: bool = False) -> str:
    args = (
        call.args
        if whole or len(call.args) <= _MAX_ARGS_LENGTH
        else (f"{call.args[:_MAX_ARGS_LENGTH]}…")
    )
    status = "running" if call.status is None else call.status.value
    reason = call.reason or "an earlier version decided, which stored no reason"
    return f"{call.tool} {args} ({status}): {reason}"
