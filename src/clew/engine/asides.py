"""Chat commands of the control lane: answered at once, whatever a conversation is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core import scope as scopes
from clew.core.approval import fits_in_chat
from clew.core.people import AccessStatus
from clew.core.turn import TurnState
from clew.engine.chores import LISTED
from clew.engine.desk import Reply, number
from clew.errors import InvalidTransition, UsageError
from clew.store.transactions.hearing import NOT_ALLOWED_NOTICE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.approval import NumberedApproval
    from clew.core.conversation import Conversation
    from clew.core.people import Person
    from clew.engine.desk import Desk


async def stop(desk: Desk, argument: str) -> Reply:
    stopped = desk.found is not None and await desk.engine.stop(desk.found)
    return desk.reply("Stopped." if stopped else "Nothing is running here.")


async def sessions(desk: Desk, argument: str) -> Reply:
    page = await desk.engine.list(viewer=desk.viewer, title=argument, limit=LISTED)
    if not page.items:
        return desk.reply("There are no conversations" + (" like that." if argument else " yet."))
    lines = [_line(n, one, here=one.id == desk.found) for n, one in enumerate(page.items, 1)]
    if argument:
        # Numbers count in the whole list.
        lines = [_line(None, one, here=one.id == desk.found) for one in page.items]
    if page.next is not None:
        lines.append("There are more: /sessions WORDS finds them by their titles.")
    return desk.reply("\n".join(lines))


def _line(place: int | None, one: Conversation, *, here: bool) -> str:
    name = one.title or "(no title)"
    mark = " (here)" if here else ""
    start = "" if place is None else f"{place}. "
    return f"{start}{name}{mark}, {one.last_seq} entries, {one.updated_at:%Y-%m-%d %H:%M}, {one.id}"


async def queue(desk: Desk, argument: str) -> Reply:
    if desk.found is None or not (waiting := await desk.engine.queue(desk.found)):
        return desk.reply("Nothing waits.")
    lines = [f"{n}. {' '.join(item.text.split())[:80]}" for n, item in enumerate(waiting, 1)]
    return desk.reply("\n".join(lines))


_DOING = {
    None: "nothing",
    TurnState.RUNNING: "answering; /stop ends it",
    TurnState.WAITING: "waiting for /approve or /deny",
}


async def status(desk: Desk, argument: str) -> Reply:
    view = await desk.engine.show(desk.conversation, viewer=desk.viewer)
    turn = await desk.engine.unfinished_turn(desk.conversation)
    waiting = await desk.engine.queue(desk.conversation)
    head = view.sessions[-1]
    rows = [
        ("conversation", f"{view.conversation.title or '(no title)'}, {desk.conversation}"),
        ("session", head.id if head.is_open else f"{head.id}, ended ({head.end_reason})"),
        ("entries", str(view.conversation.last_seq)),
        ("model", await desk.engine.models.name(desk.conversation)),
        ("doing", _DOING[None if turn is None else turn.state]),
        ("waiting", str(len(waiting))),
    ]
    return desk.reply("\n".join(f"{name}: {value}" for name, value in rows))


async def usage(desk: Desk, argument: str) -> Reply:
    used = (await desk.engine.show(desk.conversation, viewer=desk.viewer)).usage
    text = (
        f"Tokens in: {used.input_tokens:,} ({used.cached_tokens:,} of them cached), "
        f"out: {used.output_tokens:,}."
    )
    if used.cost_micros is not None:
        text += f" Cost: ${used.cost_micros / 1_000_000:.4f}."
    return desk.reply(text)


async def approve(desk: Desk, argument: str) -> Reply:
    return await _answer(desk, argument, yes=True)


async def deny(desk: Desk, argument: str) -> Reply:
    return await _answer(desk, argument, yes=False)


async def _answer(desk: Desk, argument: str, *, yes: bool) -> Reply:
    questions, others = ((), 0) if desk.found is None else await _questions(desk)
    if not questions:
        return desk.reply(NOT_ALLOWED_NOTICE if others else "Nothing waits for your word here.")
    chosen = _chosen(questions, argument, word="approve" if yes else "deny")
    for each in chosen:
        try:
            await desk.engine.answer(each.approval.id, yes=yes, by=_name(desk))
        except InvalidTransition:
            raise UsageError(
                f"too late: question {each.number} was answered, or its time is over"
            ) from None
    word = "Allowed" if yes else "Refused"
    named = ", ".join(each.approval.tool for each in chosen)
    left = len(questions) - len(chosen)
    return desk.reply(f"{word}: {named}." + (f" {left} more wait." if left else ""))


def _name(desk: Desk) -> str:
    who = desk.who
    return desk.viewer if who is None else f"{who.account.channel}:{who.user}"


async def _questions(desk: Desk) -> tuple[Sequence[NumberedApproval], int]:
    """The open questions that whoever writes here may answer, and how many others wait here."""
    if desk.who is not None and desk.route is not None:
        return await desk.engine.hearing.questions(
            desk.conversation, who=desk.who, route=desk.route
        )
    asked = await desk.engine.questions(desk.conversation)
    if desk.viewer == scopes.LOCAL:
        return asked, 0
    here = None if desk.route is None else desk.route.key
    return [
        one for one in asked if one.approval.route in (None, here) and fits_in_chat(one.approval)
    ], 0


def _chosen(
    questions: Sequence[NumberedApproval], argument: str, *, word: str
) -> Sequence[NumberedApproval]:
    if argument == "all":
        return questions
    if argument.startswith("apr_"):
        return [_named(questions, argument)]
    if not argument and len(questions) == 1:
        return questions
    listed = ", ".join(f"{one.number} ({one.approval.tool})" for one in questions)
    if not argument:
        raise UsageError(
            f"{len(questions)} questions wait, {listed}: /{word} {questions[0].number} answers "
            f"one, /{word} all answers them all"
        )
    place = number(argument)
    chosen = [one for one in questions if one.number == place]
    if not chosen:
        raise UsageError(f"there is no question {place} that waits; these do: {listed}")
    return chosen


def _named(questions: Sequence[NumberedApproval], id_: str) -> NumberedApproval:
    for one in questions:
        if one.approval.id == id_:
            return one
    raise UsageError(f"no question {id_} waits here: it was answered, or has expired")


async def pair(desk: Desk, argument: str) -> Reply:
    word, _, user = argument.partition(" ")
    if not argument:
        return desk.reply("\n".join(map(_person, await desk.engine.people.list())) or "Nobody yet.")
    if word == "remove" and user.strip():
        return desk.reply(await _shut_out(desk, user.strip()))
    person = await desk.engine.people.approve(argument, by=desk.viewer)
    return desk.reply(f"Let in: {person.name or 'somebody'}, id {person.user}.")


def _person(person: Person) -> str:
    name = person.name or "(no name)"
    where = f"{person.account.channel} {person.user}"
    return f"{person.standing.value}: {name}, {where}, {person.changed_at:%Y-%m-%d %H:%M}"


async def _shut_out(desk: Desk, user: str) -> str:
    known = [one for one in await desk.engine.people.list() if one.user == user]
    if not known:
        raise UsageError(f"nobody has the id {user!r}: /pair lists them")
    for one in known:
        await desk.engine.people.shut_out(
            one.account, user, to=AccessStatus.REMOVED, by=desk.viewer
        )
    return f"Shut out: {user}."
