"""
Compaction rules: when to compact, where to cut, and which summaries to accept.

Sizes are tokens. Counts reported by the provider are exact; later additions are estimated
from bytes.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Default bytes per token.
BYTES_PER_TOKEN = 3.0
#: A shorter summary is rejected if it replaces more than ``LARGE_CONTEXT`` tokens.
MIN_SUMMARY_CHARS = 200
LARGE_CONTEXT = 2000
#: Compactions of one turn.
MAX_PER_TURN = 2
#: Compactions without progress after which automatic compaction stops.
MAX_STALLS = 2
#: This many compactions within this many entries are a burst: something refills the context.
BURST_COUNT, BURST_ENTRIES = 3, 30
#: Less than this share saved is no progress.
MIN_SAVED_SHARE = 0.1
#: Seconds after a failure before the next automatic attempt.
COOLDOWN_SECONDS = 300.0
#: Characters of one tool result: what stays is truncated step by step, within these limits.
MAX_RESULT_CHARS, MIN_RESULT_CHARS = 60_000, 1_500
#: Consecutive crashed attempts after which the next one is postponed.
MAX_CRASHES = 2


#: Largest credible ratio between a provider's token count and our estimate.
MAX_ESTIMATE_RATIO = 4
#: Tokens that instructions, tools and a server's own template may take.
MAX_OVERHEAD_TOKENS = 10_000


class MessageSize(Record):
    """Size and role of one context message, as far as the rules need them."""

    tokens: int
    calls: frozenset[str] = frozenset()
    answers: frozenset[str] = frozenset()
    from_user: bool = False
    #: It replaces earlier messages.
    is_summary: bool = False


class CompactionState(Record):
    """Compaction state of a session; inherited by its successor."""

    #: Milliseconds; automatic compaction waits until then. 0 while an attempt is under way.
    cooldown_until: int = 0
    #: Attempts since the last compaction; counted before the summariser is asked.
    failures: int = 0
    #: Compactions in a row that made no progress.
    stalls: int = 0
    #: The last seq at each recent compaction.
    fired: tuple[int, ...] = ()
    #: The person was notified that compaction fails.
    told: bool = False


def estimate_tokens(size: int, *, bytes_per_token: float = BYTES_PER_TOKEN) -> int:
    """Estimate the tokens of ``size`` bytes of text, rounded up."""
    return -int(-size // bytes_per_token)


def is_credible_count(reported: int, *, estimated: int) -> bool:
    """
    Return whether a provider's token count is plausible by our estimate.

    Instructions and tools, which the estimate omits, may add a lot to a short context.
    """
    return (
        estimated <= reported * MAX_ESTIMATE_RATIO
        and reported <= estimated * MAX_ESTIMATE_RATIO + MAX_OVERHEAD_TOKENS
    )


def exceeds_budget(tokens: int, *, window: int, threshold: float) -> bool:
    """Return whether the next request would exceed its share of the context window."""
    return tokens > window * threshold


def may_compact(state: CompactionState, *, now: int, turn_from: int) -> bool:
    """
    Return whether automatic compaction may run now.

    It may not during a cool-down, after too many stalls, or too often in one turn.
    ``turn_from`` is the first seq of the running turn. Requests by a person are not
    limited.
    """
    this_turn = sum(seq >= turn_from for seq in state.fired)
    return now >= state.cooldown_until and state.stalls < MAX_STALLS and this_turn < MAX_PER_TURN


def is_too_frequent(state: CompactionState, *, last_seq: int) -> bool:
    """Return whether a compaction now would complete a burst of them."""
    earlier = state.fired[-BURST_COUNT:]
    return len(earlier) == BURST_COUNT and last_seq - earlier[0] <= BURST_ENTRIES


def record_success(
    state: CompactionState, *, last_seq: int, before: int, after: int
) -> CompactionState:
    """Return the state after a compaction replaced ``before`` tokens by ``after``."""
    progress = after <= before * (1 - MIN_SAVED_SHARE)
    return CompactionState(
        stalls=0 if progress else state.stalls + 1, fired=(*state.fired[-9:], last_seq)
    )


def record_attempt(state: CompactionState) -> CompactionState:
    """Return the state during an attempt: the one that remains if the process dies."""
    return replace(state, cooldown_until=0, failures=state.failures + 1)


def crashed_repeatedly(state: CompactionState) -> bool:
    """Return whether earlier attempts died with their process."""
    return state.cooldown_until == 0 and state.failures >= MAX_CRASHES


def record_failure(state: CompactionState, *, now: int, refused: bool = False) -> CompactionState:
    """
    Return the state after a failed attempt; the person is notified the first time.

    A rejected summary (``refused``) counts as a stall, which limits further attempts.
    """
    return replace(
        state,
        cooldown_until=now + int(COOLDOWN_SECONDS * 1000),
        stalls=state.stalls + refused,
        told=True,
    )


def find_tail_start(messages: Sequence[MessageSize], *, keep: int) -> int:
    """
    Return the index where the recent tail starts: ``keep`` tokens or one message.

    Never between a call and its result. 0 means that nothing precedes the tail.
    """
    boundaries = _find_boundaries(messages)
    tail, best = 0, len(messages)
    for index in range(len(messages) - 1, -1, -1):
        tail += messages[index].tokens
        if index in boundaries:
            if tail > keep and best < len(messages):
                break
            best = index
    return best if best < len(messages) else 0


def _find_boundaries(messages: Sequence[MessageSize]) -> set[int]:
    """Return the indexes before which no call is unanswered."""
    found: set[int] = set()
    open_calls: frozenset[str] = frozenset()
    for index, message in enumerate(messages):
        if not open_calls & message.answers:
            # A call that was not answered right away never is.
            open_calls = frozenset()
        if not open_calls:
            found.add(index)
        open_calls = (open_calls | message.calls) - message.answers
    return found


def find_last_user(messages: Sequence[MessageSize]) -> int | None:
    """Return the index of the last message that a person wrote."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].from_user:
            return index
    return None


def select_kept(messages: Sequence[MessageSize], tail: int) -> list[int]:
    """
    Return the indexes that stay: the tail, and the newest request before it.

    Returns all of them if too little would be saved; an earlier summary does not count,
    since it cannot be shortened further.
    """
    stays = list(range(tail, len(messages)))
    last = find_last_user(messages)
    if last is not None and last < tail:
        stays.insert(0, last)
    goes = set(range(tail)).difference(stays)
    gain = sum(messages[index].tokens for index in goes if not messages[index].is_summary)
    if gain <= MIN_SAVED_SHARE * sum(message.tokens for message in messages):
        return list(range(len(messages)))
    return stays


def truncation_limits() -> Iterator[int]:
    """Yield decreasing character limits for the results that must stay."""
    cap = MAX_RESULT_CHARS
    while cap > MIN_RESULT_CHARS:
        cap = max(cap // 2, MIN_RESULT_CHARS)
        yield cap


class SummaryFault(enum.Enum):
    """Fault for which a summary is rejected."""

    EMPTY = "empty"
    NO_HEADING = "no_heading"
    TOO_LONG = "too_long"  #: no shorter than the messages that it replaces
    TOO_SHORT = "too_short"


def find_summary_fault(
    summary: str, *, replaces: int, headings: Sequence[str]
) -> SummaryFault | None:
    """Return why a summary of ``replaces`` tokens is rejected; ``None`` if it is valid."""
    if not summary.strip():
        return SummaryFault.EMPTY
    if estimate_tokens(len(summary.encode())) >= replaces:
        return SummaryFault.TOO_LONG
    if not any(heading.lower() in summary.lower() for heading in headings):
        return SummaryFault.NO_HEADING
    if replaces > LARGE_CONTEXT and len(summary.strip()) < MIN_SUMMARY_CHARS:
        return SummaryFault.TOO_SHORT
    return None
