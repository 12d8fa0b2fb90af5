"""
Compaction rules: when a session is compacted, where it is cut, and what a summary must be.

Sizes are tokens. What the provider reported is exact; what came since is estimated from bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Bytes per token where nothing better is known.
BYTES_PER_TOKEN = 3.0
#: A summary this short is refused where it replaces more than ``MUCH`` tokens.
SHORTEST_SUMMARY = 200
MUCH = 2000
#: Compactions of one turn.
MOST_PER_TURN = 2
#: Compactions without progress after which they stop by themselves.
MOST_STALLS = 2
#: So many compactions within so many entries are too often: something fills the context each time.
TOO_MANY, TOO_CLOSE = 3, 30
#: Less than this share saved is no progress.
PROGRESS = 0.1
#: Seconds after a failure before compaction is tried again by itself.
COOLDOWN = 300.0
#: Characters of one tool result: what stays is shortened step by step, and no further than this.
MOST_OF_A_RESULT, LEAST_OF_A_RESULT = 60_000, 1_500
#: Attempts in a row in which the process may die before the next one is put off.
MOST_DEATHS = 2


#: How many times a provider's count of tokens may be off our estimate to be believed.
MOST_OFF = 4
#: Tokens that instructions, tools and a server's own template may take.
UNSEEN = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Sized:
    """What the rules need to know of one message of a context."""

    tokens: int
    calls: frozenset[str] = frozenset()
    answers: frozenset[str] = frozenset()
    from_user: bool = False
    #: It stands for messages that were replaced.
    is_summary: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """What is remembered of a session's compactions; handed on to its successor."""

    #: Milliseconds; automatic compaction waits until then. 0 while an attempt is under way.
    cooldown_until: int = 0
    #: Attempts since the last compaction; counted before the summariser is asked.
    failures: int = 0
    #: Compactions in a row that made no progress.
    stalls: int = 0
    #: The last seq at each compaction of late.
    fired: tuple[int, ...] = ()
    #: The person was told that compaction fails.
    told: bool = False


def tokens_of(size: int, *, bytes_per_token: float = BYTES_PER_TOKEN) -> int:
    """An estimate for ``size`` bytes of text, rounded up."""
    return -int(-size // bytes_per_token)


def credible(reported: int, *, estimated: int) -> bool:
    """
    Whether a provider's count of a context can be true, by our estimate of its messages.

    Instructions and tools, which the estimate does not see, may add a lot to a short context.
    """
    return estimated <= reported * MOST_OFF and reported <= estimated * MOST_OFF + UNSEEN


def over_budget(tokens: int, *, window: int, threshold: float) -> bool:
    """Whether the next request would fill more than its share of the context window."""
    return tokens > window * threshold


def may_compact(state: State, *, now: int, turn_from: int) -> bool:
    """
    Whether compaction may run by itself: not in a cool-down, not broken, not too often in one turn.

    ``turn_from`` is the first seq of the running turn. A person who asks is not held up by this.
    """
    this_turn = sum(seq >= turn_from for seq in state.fired)
    return now >= state.cooldown_until and state.stalls < MOST_STALLS and this_turn < MOST_PER_TURN


def too_often(state: State, *, last_seq: int) -> bool:
    """Return whether a compaction now would be one of many that came close together."""
    earlier = state.fired[-TOO_MANY:]
    return len(earlier) == TOO_MANY and last_seq - earlier[0] <= TOO_CLOSE


def after_success(state: State, *, last_seq: int, before: int, after: int) -> State:
    """What is remembered once a compaction has replaced ``before`` tokens by ``after``."""
    progress = after <= before * (1 - PROGRESS)
    return State(stalls=0 if progress else state.stalls + 1, fired=(*state.fired[-9:], last_seq))


def begun(state: State) -> State:
    """What is remembered while an attempt is under way: all that is left if the process dies."""
    return replace(state, cooldown_until=0, failures=state.failures + 1)


def deadly(state: State) -> bool:
    """Whether the attempts before died with their process, and the next one would too."""
    return state.cooldown_until == 0 and state.failures >= MOST_DEATHS


def after_failure(state: State, *, now: int, refused: bool = False) -> State:
    """
    What is remembered once an attempt failed; the person is told the first time.

    A summary that was no good (``refused``) is no progress, and there will not be many more.
    """
    return replace(
        state,
        cooldown_until=now + int(COOLDOWN * 1000),
        stalls=state.stalls + refused,
        told=True,
    )


def cut(messages: Sequence[Sized], *, keep: int) -> int:
    """
    The index where the recent tail begins: at most ``keep`` tokens, but one message at least.

    Never between a call and its result. 0 means that there is nothing before the tail.
    """
    boundaries = _boundaries(messages)
    tail, best = 0, len(messages)
    for index in range(len(messages) - 1, -1, -1):
        tail += messages[index].tokens
        if index in boundaries:
            if tail > keep and best < len(messages):
                break
            best = index
    return best if best < len(messages) else 0


def _boundaries(messages: Sequence[Sized]) -> set[int]:
    """Indexes before which no call is unanswered."""
    found: set[int] = set()
    open_calls: frozenset[str] = frozenset()
    for index, message in enumerate(messages):
        if not open_calls & message.answers:
            # What was not answered right away is not answered any more.
            open_calls = frozenset()
        if not open_calls:
            found.add(index)
        open_calls = (open_calls | message.calls) - message.answers
    return found


def last_user(messages: Sequence[Sized]) -> int | None:
    """The index of the last message that a person wrote."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].from_user:
            return index
    return None


def kept(messages: Sequence[Sized], tail: int) -> list[int]:
    """
    The indexes that no summary takes the place of: the tail, and the newest request before it.

    All of them if so little would go that it is no progress; an earlier summary does not count,
    since it cannot be said in fewer words.
    """
    stays = list(range(tail, len(messages)))
    last = last_user(messages)
    if last is not None and last < tail:
        stays.insert(0, last)
    goes = set(range(tail)).difference(stays)
    gain = sum(messages[index].tokens for index in goes if not messages[index].is_summary)
    if gain <= PROGRESS * sum(message.tokens for message in messages):
        return list(range(len(messages)))
    return stays


def caps() -> Iterator[int]:
    """Characters to which the results that must stay are shortened, until all has room."""
    cap = MOST_OF_A_RESULT
    while cap > LEAST_OF_A_RESULT:
        cap = max(cap // 2, LEAST_OF_A_RESULT)
        yield cap


def refusal(summary: str, *, replaces: int, headings: Sequence[str]) -> str | None:
    """Why a summary is no good for what it replaces (tokens); ``None`` if it is good."""
    size = tokens_of(len(summary.encode()))
    if not summary.strip():
        return "the summary is empty"
    if size >= replaces:
        return f"the summary is no shorter ({size} tokens) than what it replaces ({replaces})"
    if not any(heading.lower() in summary.lower() for heading in headings):
        return "the summary has none of the headings that were asked for"
    if replaces > MUCH and len(summary.strip()) < SHORTEST_SUMMARY:
        return f"the summary has only {len(summary.strip())} characters"
    return None
