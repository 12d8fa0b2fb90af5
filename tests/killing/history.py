"""
Judging a history by what was seen from outside: requests, effects, what the fronts were told.

Pure: records in, sentences about what is wrong out. Nothing here reads the store.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew.testing.provider.request_parsing import parse_messages
from tests.killing.plans import (
    SUMMARISE,
    answered_by,
    conversation_of,
    key_of,
    keys_in,
    result_of,
    summarise,
    summary_in,
)
from tests.killing.records import Acknowledged, Allowed, Effect, Ended, Handed, Ready, Resumed
from tests.killing.tools import APPROVED_FIRST, EFFECTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from clew.testing.provider import CapturedRequest, ProviderMessage
    from tests.killing.records import Record

#: The result that the model gets for a call that may have had its effect.
UNKNOWN = "interrupted, outcome unknown: "
#: About one that had none, in a turn that failed.
CANCELLED = "cancelled: "
#: About one whose result was made short.
CLEARED = "[result cleared: "


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """One request at the provider."""

    number: int
    conversation: str
    #: As they came, instructions included.
    raw: tuple[dict[str, Any], ...]
    messages: tuple[ProviderMessage, ...]
    outcome: str
    text: str
    started: float
    ended: float


@dataclass(frozen=True, kw_only=True, slots=True)
class History:
    """All that was seen."""

    fronts: Sequence[Record]
    effects: Sequence[Effect]
    #: In the order in which they came in, but for those that ask for a summary.
    requests: Sequence[Seen]
    #: Those.
    summaries: Sequence[Seen] = ()

    def of_conversation(self) -> dict[str, list[Seen]]:
        found: defaultdict[str, list[Seen]] = defaultdict(list)
        for seen in self.requests:
            found[seen.conversation].append(seen)
        return dict(found)

    def handed(self) -> dict[str, list[str]]:
        """The messages of each conversation, in the order in which they were handed over."""
        found: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for record in _of(self.fronts, Handed):
            found[conversation_of(record.key)][record.key] = None
        return {name: list(keys) for name, keys in found.items()}


def seen(captured: Iterable[CapturedRequest]) -> list[Seen]:
    """The provider's log as the judge wants it."""
    return [
        _seen(record)
        for record in sorted(captured, key=lambda record: record.number)
        if record.json is not None and record.path.endswith("/chat/completions")
    ]


def _seen(record: CapturedRequest) -> Seen:
    body = record.json or {}
    messages = parse_messages("chat", body)
    said = keys_in(messages) or summarise(asked_to_summarise(messages)).said
    return Seen(
        number=record.number,
        conversation=next((conversation_of(key) for key in said), ""),
        raw=tuple(body.get("messages", ())),
        messages=messages,
        outcome=record.outcome,
        text=record.text or "",
        started=record.started,
        ended=record.ended or record.started,
    )


def in_time(requests: Iterable[Seen]) -> list[Seen]:
    """
    The requests without those that a cut link held back.

    Such a one was sent before its gateway gave up and its conversation was gone on with elsewhere.
    It comes in after a longer one that begins as it does, when the link has healed.
    """
    longest: dict[str, Seen] = {}
    found: list[Seen] = []
    for request in requests:
        before = longest.get(request.conversation, request)
        length = len(request.raw)
        if length < len(before.raw) and before.raw[:length] == request.raw:
            continue
        longest[request.conversation] = request
        found.append(request)
    return found


def asked_to_summarise(messages: Sequence[ProviderMessage]) -> str:
    """The request for a summary; nothing in any other request."""
    return next((m.text for m in messages if m.text.startswith(SUMMARISE)), "")


def judge(history: History, *, failed: Iterable[str] = (), ordered: bool = True) -> list[str]:
    """
    Everything that is wrong with a history.

    ``failed``: messages that are expected to end in failure. With ``ordered`` each conversation's
    messages were accepted in the order in which they were handed over.
    """
    return [
        *_outcomes(history, frozenset(failed)),
        *_refusals(history),
        *_texts(history, ordered=ordered),
        *_growth(history),
        *_compactions(history),
        *_answers(history, frozenset(failed)),
        *_results(history, frozenset(failed)),
        *_effects(history),
        *_permissions(history),
    ]


def _outcomes(history: History, failed: frozenset[str]) -> Iterator[str]:
    """Each message that was handed over is accepted once and ends once."""
    acknowledged, ended = _by_key(history, Acknowledged), _by_key(history, Ended)
    for key in itertools.chain.from_iterable(history.handed().values()):
        ids = {(record.inbox_id, record.conversation) for record in acknowledged.get(key, ())}
        ends = {
            (record.outcome, record.turn, record.turn_outcome, record.text)
            for record in ended.get(key, ())
        }
        if len(ids) != 1:
            yield f"{key} was accepted as {len(ids)} inputs"
        if len(ends) != 1:
            yield f"{key} has {len(ends)} outcomes: {sorted(ends, key=str)}"
        wanted = "failed" if key in failed else "answered"
        for outcome, _, turn_outcome, text in ends:
            if turn_outcome != wanted or outcome not in ("turn", "merged", "steered"):
                yield f"{key} ended as {outcome}, its turn as {turn_outcome}: {text!r}"
            if not text:
                yield f"{key} ended in silence"


def _refusals(history: History) -> Iterator[str]:
    for request in history.requests:
        if request.outcome in ("refused", "script_failed"):
            yield f"request {request.number} of {request.conversation} was {request.outcome}"


def _texts(history: History, *, ordered: bool) -> Iterator[str]:
    """Each request has every earlier message of its conversation once, in order."""
    handed = history.handed()
    for request in history.requests:
        # The newest message stays as it was said, beside the summary that it went into.
        told = summary_in(request.messages).said
        kept, wanted = keys_in(request.messages), handed.get(request.conversation, [])
        keys = [*told, *kept[1 if told and kept[:1] == [told[-1]] else 0 :]]
        where = f"request {request.number} of {request.conversation}"
        for key, times in Counter(keys).items():
            if times > 1:
                yield f"{where} has {key} {times} times"
            if key not in wanted:
                yield f"{where} has {key}, which nobody said there"
        if ordered and keys != wanted[: len(keys)]:
            yield f"{where} has {keys}, said was {wanted[: len(keys)]}"


def _growth(history: History) -> Iterator[str]:
    """A sent prefix begins every later request, until there is a summary."""
    for requests in history.of_conversation().values():
        for before, after in itertools.pairwise(requests):
            if not _begins_as(before, after) and not _compacted(before, after):
                yield (
                    f"request {after.number} of {after.conversation} does not begin as "
                    f"request {before.number} did"
                )


def _begins_as(before: Seen, after: Seen) -> bool:
    """Return whether a request begins like an earlier one; unanswered parts may have changed."""
    *firm, last = before.raw
    new = after.raw[len(firm)] if len(after.raw) > len(firm) else {}
    joined = last.get("role") == "user" and str(new.get("content")).startswith(
        f"{last.get('content')}\n\n"
    )
    return list(after.raw[: len(firm)]) == firm and (
        new == last or (joined and new["role"] == "user")
    )


def _compacted(before: Seen, after: Seen) -> bool:
    """Return whether the context was replaced between two requests."""
    if summary_in(before.messages) != summary_in(after.messages):
        return True
    pairs = list(zip(before.raw, after.raw, strict=False))
    return len(pairs) == len(before.raw) and all(_same_but_cleared(old, new) for old, new in pairs)


def _same_but_cleared(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    content = str(new.get("content"))
    return new == (old if not content.startswith(CLEARED) else {**old, "content": content})


def _last_of_each_context(requests: Sequence[Seen]) -> list[Seen]:
    """Return the last request before each compaction, and at the end."""
    pairs = itertools.pairwise(requests)
    return [*(before for before, after in pairs if _compacted(before, after)), requests[-1]]


def _compactions(history: History) -> Iterator[str]:
    """Each context goes on from the one before, and no summary is of another."""
    made = defaultdict[str, list[str]](list)
    for request in history.summaries:
        if request.outcome == "answered":
            made[request.conversation].append(request.text)
    for conversation, requests in history.of_conversation().items():
        known: list[str] = []
        for request in requests:
            summary = summary_in(request.messages)
            where = f"request {request.number} of {conversation}"
            if summary.said and summary.text not in made[conversation]:
                yield f"{where} has a summary that nobody made"
            if not set(known) <= set(summary.said):
                yield f"{where} has a summary of {summary.said}, before it was {known}"
            known = list(summary.said)


def _answers(history: History, failed: frozenset[str]) -> Iterator[str]:
    """Each message is answered once, and that is what its front was told."""
    told = {record.key: record.text for record in _of(history.fronts, Ended)}
    handed = history.handed()
    for conversation, requests in history.of_conversation().items():
        texts = _final_answers(requests[-1])
        answered = [(key, text) for text in texts for key in answered_by(text)]
        times = Counter(key for key, _ in answered)
        for key in handed.get(conversation, []):
            # An answer to a later message may answer one whose own turn failed, too.
            if times[key] != 1 and key not in failed:
                yield f"{key} has {times[key]} answers: {texts}"
        for key, text in answered:
            if key not in failed and told.get(key, text) != text:
                yield f"{key} was told {told[key]!r}, the model said {text!r}"


def _final_answers(last: Seen) -> list[str]:
    """Return the content of a conversation's last request and of its reply."""
    told = summary_in(last.messages).answers
    before = [*told, *(m.text for m in last.messages if m.role == "assistant" and not m.calls)]
    return [*before, last.text] if last.outcome == "answered" else before


def _results(history: History, failed: frozenset[str]) -> Iterator[str]:
    """Each call has one result, and what it says is true of what the tool did."""
    done = Counter(effect.what for effect in history.effects)
    for conversation, requests in history.of_conversation().items():
        for last in _last_of_each_context(requests):
            yield from _results_in(last, conversation, done, failed)


def _results_in(
    last: Seen, conversation: str, done: Counter[str], failed: frozenset[str]
) -> Iterator[str]:
    calls = _calls(last.messages)
    results = [result for m in last.messages for result in m.results]
    times = Counter(result.call_id for result in results)
    for what in calls:
        if times[what] != 1:
            yield f"call {what} of {conversation} has {times[what]} results"
    for call_id in times.keys() - calls.keys():
        yield f"there is a result of {call_id} in {conversation}, which nobody called"
    for result in results:
        what, tool = result.call_id, calls.get(result.call_id, "")
        if not _true(what, tool, result.text, done[what], failed=key_of(what) in failed):
            yield f"{tool} {what} was done {done[what]} times, its result is {result.text!r}"


def _true(what: str, tool: str, text: str, times: int, *, failed: bool) -> bool:
    """Return whether a result names the effect of its tool, ``times`` times."""
    kind = EFFECTS.get(tool)
    if text == result_of(tool, what) or text.startswith(CLEARED):
        return times > 0
    if text.startswith(UNKNOWN):
        return kind in ("once", "ask") or failed
    # In a failed turn, a call that had its effect must not be reported as cancelled.
    return failed and text.startswith(CANCELLED) and (kind == "pure" or not times)


def _effects(history: History) -> Iterator[str]:
    """No effect is had more often than its tool allows."""
    allowed = Counter(record.what for record in _of(history.fronts, Allowed))
    by_what: defaultdict[str, list[Effect]] = defaultdict(list)
    for effect in history.effects:
        by_what[effect.what].append(effect)
    for what, effects in by_what.items():
        if len({effect.tool for effect in effects}) > 1:
            yield f"{what} was done by different tools"
        kind, keys = effects[0].effect, {effect.key for effect in effects}
        if kind == "once" and len(effects) > 1:
            yield f"{what} had its effect {len(effects)} times"
        if kind == "ask" and len(effects) > 1 + bool(allowed[what]):
            yield f"{what} had its effect {len(effects)} times, allowed were {allowed[what]}"
        if kind == "idempotent" and len(keys) > 1:
            yield f"{what} was repeated with another key: {sorted(keys)}"
    yield from _shared_keys(by_what)


def _shared_keys(by_what: Mapping[str, Sequence[Effect]]) -> Iterator[str]:
    owners: dict[str, str] = {}
    for what, effects in by_what.items():
        for key in {effect.key for effect in effects}:
            if owners.setdefault(key, what) != what:
                yield f"{what} and {owners[key]} have the key {key}"


def _permissions(history: History) -> Iterator[str]:
    """A call that needs approval runs after it was given."""
    given: dict[str, float] = {}
    for record in _of(history.fronts, Allowed):
        given[record.what] = min(record.at, given.get(record.what, record.at))
    for effect in history.effects:
        if effect.tool in APPROVED_FIRST and effect.at < given.get(effect.what, float("inf")):
            yield f"{effect.what} was done before anybody allowed it"


def overlaps(history: History) -> list[str]:
    """
    Requests of one conversation that were under way at the same time.

    One that was broken off counts for nothing: when that was, the provider learns later.
    """
    found: list[str] = []
    for conversation, requests in history.of_conversation().items():
        whole = [seen for seen in requests if seen.outcome == "answered"]
        for a, b in itertools.pairwise(sorted(whole, key=lambda seen: seen.started)):
            if b.started < a.ended:
                found.append(f"requests {a.number} and {b.number} of {conversation} overlap")
    return found


def resume_times(fronts: Iterable[Record]) -> list[float]:
    """Seconds from when a process was ready until it took up what another had left."""
    ready: dict[int, float] = {}
    left: set[str] = set()
    found: list[float] = []
    for record in fronts:
        if isinstance(record, Ready):
            ready[record.pid] = record.at
            left = set()
        elif isinstance(record, Resumed) and record.pid in ready and record.turn not in left:
            left.add(record.turn)
            found.append(record.at - ready[record.pid])
    return found


def _calls(messages: Iterable[ProviderMessage]) -> dict[str, str]:
    return {call.id: call.name for message in messages for call in message.calls}


def _of(records: Iterable[Record], kind: type[Any]) -> Iterator[Any]:
    return (record for record in records if isinstance(record, kind))


def _by_key(history: History, kind: type[Any]) -> dict[str, list[Any]]:
    found: defaultdict[str, list[Any]] = defaultdict(list)
    for record in _of(history.fronts, kind):
        found[record.key].append(record)
    return dict(found)
