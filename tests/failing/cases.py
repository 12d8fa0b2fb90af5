"""Every way in which a provider fails, and what has to come of it: one table for all formats."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clew.agent.provider_errors import FailureKind as Kind
from clew.testing import (
    CutStream,
    EarlyEnd,
    EmptyChoices,
    EmptyText,
    Endless,
    Fail,
    Hang,
    Html,
    LengthStop,
    MalformedArguments,
    Slow,
    StreamError,
    Text,
    UnknownTool,
)

if TYPE_CHECKING:
    from clew.testing import ProviderRequest, Reply
    from tests.failing.desk import Desk, Format, Told

ANSWER = "the good answer"
NEXT = "the next answer"


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One failure of a provider, and what the product makes of it."""

    name: str
    reply: Reply
    #: The error that a program gets if the failure persists; ``None`` if it is no failure.
    code: Kind | None
    #: Requests of a turn in which it goes on.
    asked: int
    #: True if another request follows the first failure, and succeeds.
    passes: bool
    #: A person is told this.
    says: str
    #: Told to the model in the next request, so it belongs to the context.
    corrected: bool = False
    #: The provider is silent or endless: it is given up by the clock.
    by_clock: bool = False


def _fails(name: str, reply: Reply, code: Kind, asked: int, says: str) -> Case:
    return Case(name=name, reply=reply, code=code, asked=asked, passes=asked > 1, says=says)


def _corrected(name: str, reply: Reply, code: Kind, asked: int, says: str) -> Case:
    return replace(_fails(name, reply, code, asked, says), corrected=True)


_CLOCK = "the provider"
_NOTHING = "gave an empty answer"
#: Retries of the agent that the cases run with.
RETRIES = 1
CASES = (
    _fails("rate limit", Fail("rate_limit"), Kind.RATE_LIMIT, 4, "429"),
    _fails("quota", Fail("quota"), Kind.QUOTA, 1, "4"),
    _fails("payment", Fail("payment"), Kind.QUOTA, 1, "402"),
    _fails("authentication", Fail("authentication"), Kind.AUTH, 1, "401"),
    _fails("unknown model", Fail("unknown_model"), Kind.NO_MODEL, 1, "404"),
    _fails("too large", Fail("too_large"), Kind.OVERFLOW, 1, "context window"),
    _fails("overflow", Fail("context_overflow"), Kind.OVERFLOW, 1, "/compact"),
    _fails("bad tool call", Fail("bad_tool_call"), Kind.REFUSED, 1, "400"),
    _fails("server error", Fail("server"), Kind.SERVER, 4, "500"),
    _fails("unavailable", Fail("unavailable"), Kind.OVERLOADED, 4, "503"),
    _fails("overloaded", Fail("overloaded"), Kind.OVERLOADED, 4, "529"),
    _fails("web page 200", Html(200), Kind.WEB_PAGE, 2, "a web page"),
    _fails("web page 502", Html(502), Kind.SERVER, 4, "502 (a web page"),
    _fails("web page 504", Html(504), Kind.TIMEOUT, 2, "504 (a web page"),
    _fails("cut", CutStream(after=2), Kind.CONNECTION, 4, "That failed: "),
    _fails("early end", EarlyEnd(after=2), Kind.CONNECTION, 4, "in the middle"),
    _fails("overloaded in a stream", StreamError(after=2), Kind.OVERLOADED, 4, "verloaded"),
    _fails("rate limit in a stream", StreamError("rate_limit"), Kind.RATE_LIMIT, 4, "ate limit"),
    _fails("server error in a stream", StreamError("server"), Kind.SERVER, 4, "error"),
    replace(_fails("hang", Hang(), Kind.TIMEOUT, 2, _CLOCK), by_clock=True),
    replace(_fails("endless", Endless(), Kind.TIMEOUT, 2, _CLOCK), by_clock=True),
    replace(_fails("slow", Slow(Text("late")), Kind.TIMEOUT, 2, _CLOCK), by_clock=True),
    _corrected("nothing: no choices", EmptyChoices(), Kind.EMPTY, 2, _NOTHING),
    _corrected("nothing: null", EmptyText("null"), Kind.EMPTY, 2, _NOTHING),
    _corrected("nothing: list", EmptyText("list"), Kind.EMPTY, 2, _NOTHING),
    _corrected("nothing: no text", EmptyText("empty"), Kind.EMPTY, 2, _NOTHING),
    _corrected("nothing: blanks", EmptyText("blank"), Kind.EMPTY, 2, _NOTHING),
    _corrected("nothing: thoughts", Text("", thinking="hm"), Kind.EMPTY, 2, _NOTHING),
    _corrected(
        "unknown tool", UnknownTool("nonexistent_tool"), Kind.GAVE_UP, 2, "nonexistent_tool"
    ),
    _corrected("malformed arguments", MalformedArguments("look"), Kind.GAVE_UP, 2, "look"),
    Case(
        name="length stop",
        reply=LengthStop(),
        code=None,
        asked=1,
        passes=False,
        says="this answer was cut by the limit of",
    ),
)


def expected(case: Case, form: Format, *, stream: bool) -> Case:
    """The case as it is in one format and mode, where that makes a difference."""
    if case.name == "early end" and form == "chat" and not stream:
        # Whole JSON without a finish reason: some servers never give one, so it is an answer.
        return replace(case, code=None, asked=1, passes=False, says="one two three four five six")
    if case.name == "web page 200" and not stream:
        # Asked again as a stream, in which a page is no more than a stream without events.
        return replace(case, code=Kind.BAD_REPLY, says="invalid reply")
    return case


async def play(
    desk: Desk, case: Case, form: Format, *, stream: bool, forever: bool
) -> tuple[Told, list[str]]:
    """Let a turn meet the failure once, or for ever; what came of it, and what is wrong there."""
    case = expected(case, form, stream=stream)
    talk = await desk.begin()
    met = 0

    def script(_: ProviderRequest) -> Reply:
        nonlocal met
        met += 1
        return case.reply if forever or met == 1 else Text(ANSWER)

    desk.play(script)
    if case.by_clock:
        desk.hasten(99 if forever else 1)
    told = await desk.say(talk, "do it", stream=stream)
    desk.play(lambda _: Text(NEXT))
    following = await desk.say(talk, "and now?", stream=stream)
    answered = case.passes and not forever
    wrong = _answered(told, case) if answered else _ended(told, case, forever=forever)
    wrong += _screen(told, stream=stream) + _log(told, case, answered=answered)
    wrong += _next(told, following)
    return told, wrong


def _unless(holds: bool, sentence: str) -> list[str]:
    return [] if holds else [sentence]


def _answered(told: Told, case: Case) -> list[str]:
    return [
        *_unless(told.outcome == "answered", f"it ended as {told.outcome}"),
        *_unless(told.text == ANSWER, f"the person was told {told.text!r}"),
        *_asked(told, case, 2),
        *_unless(told.notices == [], f"notices: {told.notices}"),
        *_unless(len(told.attempts) == (0 if case.corrected else 1), f"attempts: {told.attempts}"),
    ]


def _asked(told: Told, case: Case, times: int) -> list[str]:
    count = len(told.requests)
    # A request that is given up at once may not even have arrived; attempts are counted exactly.
    holds = 0 < count <= times if case.by_clock else count == times
    return _unless(holds, f"it was asked {count} times")


def _ended(told: Told, case: Case, *, forever: bool) -> list[str]:
    asked = case.asked if forever else 1
    wrong = [
        *_asked(told, case, asked),
        *_unless(case.says in told.text, f"the person was told {told.text!r}"),
    ]
    if case.code is None:
        return [*wrong, *_unless(told.outcome == "answered", f"it ended as {told.outcome}")]
    failed = 1 if case.corrected else asked
    return [
        *wrong,
        *_unless(told.outcome == "failed", f"it ended as {told.outcome}"),
        *_unless(told.code == case.code.value, f"the code is {told.code}"),
        *_unless(len(told.attempts) == failed, f"attempts: {told.attempts}"),
        *_unless(told.notices == [told.text], f"notices: {told.notices}"),
    ]


def _screen(told: Told, *, stream: bool) -> list[str]:
    """A follower has each text once in the end, or none if none is due."""
    if not stream:
        return []
    doubtful = [screen for screen in told.screens if screen[0] not in ("", screen[1])]
    texts = [stored for _, stored in told.screens if stored]
    wanted = [told.text] if told.outcome == "answered" else []
    return [
        *_unless(not doubtful, f"pieces that are no entry: {doubtful}"),
        *_unless(texts == wanted, f"the client read {texts}"),
    ]


def _log(told: Told, case: Case, *, answered: bool) -> list[str]:
    """The failure is stored outside the context, and no partial answer in it."""
    context = told.context
    wrong = _unless(context[0] == "do it", f"the context begins with {context[0]!r}")
    if not case.corrected:
        rest = [told.text] if told.outcome == "answered" else []
        wrong += _unless(context[1:] == rest, f"the context is {context}")
    elif answered:
        wrong += _unless(context[-1] == ANSWER, f"the context ends with {context[-1]!r}")
    partial = [text for text in context if "one two" in text and text != told.text]
    return wrong + _unless(not partial, f"partial text in the context: {partial}")


def _next(told: Told, following: Told) -> list[str]:
    refused = [r.number for r in (*told.requests, *following.requests) if r.outcome == "refused"]
    body = following.requests[-1].body.decode()
    return [
        *_unless(not refused, f"the provider refused requests {refused}"),
        *_unless(following.text == NEXT, f"the next turn told {following.text!r}"),
        *_unless(len(following.requests) == 1, "the next turn was asked more than once"),
        *_unless("do it" in body, "the next turn has lost the message"),
        *_unless(
            told.outcome != "answered" or told.text in body, "the next turn has lost the answer"
        ),
    ]
