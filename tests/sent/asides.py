"""Requests beside the turns: summaries, titles and the doctor's; made again from what is stored."""

from __future__ import annotations

import copy
import json
from collections import Counter
from contextlib import suppress
from itertools import chain, islice, product, repeat, zip_longest
from typing import TYPE_CHECKING, Any

from clew.agent.compactor import HarnessCompactor
from clew.agent.models import close_models_on_exit
from clew.agent.probe import probe_model
from clew.agent.request_replay import capture_requests
from clew.agent.side_requests import request_side_answer
from clew.core.compaction import CompactionState
from clew.core.session_base import extend_base
from clew.features.goals import judging
from clew.features.goals.goals import ROUNDS, get_goal
from clew.features.goals.rounds import make_judge_request
from clew.features.memory import extractor
from clew.features.memory.extraction_spans import hash_prompt
from clew.features.titles.generator import MAX_TOKENS, TITLE_TIMEOUT
from clew.features.titles.text import write_prompt
from clew.store.transactions import compactions, context, sessions, titles
from clew.store.transactions.context import Context
from clew.testing import Fail, FakeProvider, LengthStop, Text
from clew.testing.provider.request_parsing import parse_messages
from tests.sent.models import model_at, model_of
from tests.sent.shelves import Reader

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Iterator, Sequence

    from clew.agent.models import Model
    from clew.core.ids import ConversationId
    from clew.features.goals.rounds import JudgeRequest
    from clew.store.contract import Tx
    from clew.testing import CapturedRequest, ProviderRequest, Reply
    from tests.sent.shelves import Shelf

SUMMARY, TITLE, PROBE, VERDICT, FACTS = "summary", "title", "probe", "verdict", "facts"
#: The beginning of each.
_BEGINNINGS = {
    "You keep the memory of a conversation": SUMMARY,
    "Name the conversation below": TITLE,
    "Say ok.": PROBE,
    "An agent works towards a goal": VERDICT,
    "Which lasting facts about the people": FACTS,
}


#: Places of the log at which most compactions are.
_LIKELY = 24


def kind_of(request: CapturedRequest) -> str | None:
    """Return the purpose of a request; ``None`` for a step of a turn."""
    assert request.json is not None
    assert request.format is not None
    said = [
        message.text
        for message in parse_messages(request.format, request.json)
        if message.role == "user"
    ]
    # An answer that was no good is asked for again below the first request.
    first = said[0] if said else ""
    return next((kind for start, kind in _BEGINNINGS.items() if first.startswith(start)), None)


async def unexplained_asides(
    requests: Sequence[CapturedRequest],
    t: Tx,
    shelf: Shelf,
    conversations: Sequence[ConversationId],
) -> list[CapturedRequest]:
    """Those of the requests that the store does not give."""
    left: list[CapturedRequest] = []
    summaries = [request for request in requests if kind_of(request) == SUMMARY]
    if summaries:
        made = await _summaries(summaries, t, shelf, conversations)
        left += [request for place, request in enumerate(summaries) if place not in made]
    for request in requests:
        if (kind := kind_of(request)) == SUMMARY:
            continue
        assert request.json is not None
        model = model_of(str(request.format), str(request.json["model"]))
        if kind == PROBE:
            bodies = await _probes(model)
        elif kind == VERDICT:
            bodies = await _verdicts(model, t)
        elif kind == FACTS:
            bodies = await _extractions(model, t, request)
        else:
            bodies = await _titles(model, t, conversations)
        if request.json not in bodies:
            left.append(request)
    return left


async def _probes(model: Model) -> list[object]:
    async with capture_requests(model) as (listener, heard):
        assert listener is not None
        for streamed in (True, False):
            await probe_model(listener, patience=60, streamed=streamed)
    return [json.loads(body) for body in heard]


async def _titles(model: Model, t: Tx, conversations: Iterable[ConversationId]) -> list[object]:
    exchanges = (titles.read_first_exchange(t, conversation) for conversation in conversations)
    async with capture_requests(model) as (listener, heard):
        assert listener is not None
        for said, answer in filter(None, exchanges):
            prompt = write_prompt(said=said, answer=answer)
            asking = request_side_answer(
                listener, prompt, max_tokens=MAX_TOKENS, seconds=TITLE_TIMEOUT
            )
            await _unanswered(asking)
    return [json.loads(body) for body in heard]


async def _verdicts(model: Model, t: Tx) -> list[object]:
    async with capture_requests(model) as (listener, heard):
        assert listener is not None
        for asked in _list_rounds(t):
            asking = request_side_answer(
                listener, judging.write_prompt(asked), max_tokens=judging.MAX_TOKENS, seconds=60
            )
            await _unanswered(asking)
    return [json.loads(body) for body in heard]


async def _extractions(model: Model, t: Tx, request: CapturedRequest) -> list[object]:
    """Of what they read, facts may be gone: each was hashed before it was sent."""
    assert request.json is not None
    assert request.format is not None
    [said] = parse_messages(request.format, request.json)
    hashes = t.fetch_column("SELECT hash FROM memory_prompt")
    if hash_prompt(said.text) not in hashes:
        return []
    async with capture_requests(model) as (listener, heard):
        assert listener is not None
        await _unanswered(
            request_side_answer(
                listener, said.text, max_tokens=extractor.MAX_TOKENS, seconds=TITLE_TIMEOUT
            )
        )
    return [json.loads(body) for body in heard]


def _list_rounds(t: Tx) -> list[JudgeRequest]:
    rounds = ROUNDS.fetch_all(t, "WHERE turn IS NOT NULL ORDER BY at, n")
    return [make_judge_request(t, get_goal(t, one.goal), one) for one in rounds]


async def _unanswered(asking: Awaitable[object]) -> None:
    # Nobody answers here, whatever the library makes of that.
    with suppress(Exception):
        await asking


async def _summaries(
    requests: Sequence[CapturedRequest],
    t: Tx,
    shelf: Shelf,
    conversations: Sequence[ConversationId],
) -> set[int]:
    """
    The places of those that come of compacting some context of the store.

    What a summary in several parts goes on with is the answer that the provider gave.
    """
    made: set[int] = set()
    tried: Counter[int] = Counter()

    def again(request: ProviderRequest) -> Reply:
        same = [place for place, each in enumerate(requests) if each.json == request.raw]
        made.update(same)
        if not same:
            return Fail("authentication")
        # Asked the same, a provider answers now this, now that: each is gone on with in turn.
        answer = requests[same[tried[same[0]] % len(same)]]
        tried[same[0]] += 1
        # Text that is too long for one request is sent in smaller parts.
        if answer.status == 400:
            return Fail("context_overflow")
        text = answer.text or ""
        return LengthStop(text) if answer.reply == "LengthStop" else Text(text)

    with FakeProvider(again, strict=False) as provider:
        for form, name in {(str(r.format), str((r.json or {}).get("model"))) for r in requests}:
            async with close_models_on_exit():
                model = model_at(form, name, provider.url)
                await _compact_everything(t, shelf, conversations, model, requests, made)
    return made


class _Forgetful(Reader):
    """Every compaction is the first: what failed later does not keep it from being tried."""

    async def read(self, job: Any, *args: Any, **kwargs: Any) -> Any:
        if job is compactions.load_compaction_state:
            return CompactionState()
        return await super().read(job, *args, **kwargs)


async def _compact_everything(
    t: Tx,
    shelf: Shelf,
    conversations: Sequence[ConversationId],
    model: Model,
    requests: Sequence[CapturedRequest],
    made: set[int],
) -> None:
    plans: Any = copy.copy(shelf.compactions.planner)
    plans._model, plans._store, plans._standby = model, _Forgetful(t), None
    if isinstance(plans._compactor, HarnessCompactor):
        # One that a test made hasty might give up here, on a busy machine, before it asks.
        plans._compactor = HarnessCompactor()
    bodies = "".join(request.body.decode() for request in requests)
    told = [each for each in conversations if _speaks_of(t, each, bodies)]
    # The main model stands by for one that does nothing but summarise.
    ways = list(product(dict.fromkeys((plans._apart, False)), (False, True), (False, True)))
    cases = _cases(t, told)
    # To plan takes long: the usual way at the likeliest places is tried before any other.
    likely = [(case, way) for way, case in product(ways, list(islice(cases, _LIKELY)))]
    others = ((case, way) for case in cases for way in ways)
    for (found, focus), (apart, overflowed, hard) in chain(likely, others):
        if len(made) == len(requests):
            break
        plans._apart = apart
        await _unanswered(plans.make_plan(found, focus=focus, overflowed=overflowed, hard=hard))


def _cases(t: Tx, conversations: Sequence[ConversationId]) -> Iterator[tuple[Context, str | None]]:
    """By turns of each conversation: its likeliest places come first, and there are many."""
    ways = [
        zip(_contexts(t, conversation), repeat(focus))
        for conversation in conversations
        for focus in _focuses(t, conversation)
    ]
    yield from filter(None, chain.from_iterable(zip_longest(*ways)))


def _speaks_of(t: Tx, conversation: ConversationId, bodies: str) -> bool:
    """Return whether a message of that conversation is in the requests."""
    found = t.fetch_all(
        "SELECT text FROM entry WHERE conversation_id = $1 AND role = 'user'", conversation
    )
    return any(json.dumps(row[0])[1:-1] in bodies for row in found)


def _focuses(t: Tx, conversation: ConversationId) -> list[str | None]:
    found = t.fetch_all(
        "SELECT payload FROM inbox WHERE conversation_id = $1 AND kind = 'command'", conversation
    )
    return list(dict.fromkeys([None, *(json.loads(row[0]).get("focus") for row in found)]))


def _contexts(t: Tx, conversation: ConversationId) -> Iterator[Context]:
    """The context at every place of the log, those first in which a session ended."""
    lineage = list(sessions.list_sessions(t, conversation))
    last = context.read_head_context(t, conversation).last_seq
    ends = [*(each.opened_seq for each in lineage[1:]), last]
    places = [(session, end) for session, end in zip(lineage, ends, strict=True)]
    places += [
        (session, seq)
        for session, end in zip(lineage, ends, strict=True)
        for seq in range(end - 1, session.opened_seq - 1, -1)
    ]
    for session, seq in places:
        base = extend_base(
            sessions.get_base(t, session.id), opened_seq=session.opened_seq, last_seq=seq
        )
        messages = context.expand_base(t, conversation, base)
        yield Context(session=session, last_seq=seq, messages=messages)
