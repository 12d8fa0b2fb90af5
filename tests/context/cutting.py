"""
Cutting and compacting histories, and looking at what the model is sent after that.

A *cut* is what a person does to a context: a rewind, a branch, an undo. After it the context is
compacted, at one of its messages, and something is said; the requests are captured at providers of
all three formats.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pydantic_ai.messages import UserPromptPart
from pydantic_ai.models.wrapper import WrapperModel

from clew.agent import messages as codec
from clew.agent.compactor import HarnessCompactor, estimate_size
from clew.core.compaction import LARGE_CONTEXT
from clew.core.route import local_route
from clew.core.session import COMPRESSION
from clew.engine.compaction import CompactionPolicy
from clew.store.transactions import context
from clew.testing import Fail, FakeProvider, Text
from tests.context import checker, histories
from tests.contract.lifecycle.doubles import SUMMARY, Summariser
from tests.contract.lifecycle.house import House, open_house
from tests.failing.desk import FORMATS, always, close, model_for
from tests.line import strict

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import Model

    from clew.agent.compactor import RunUsage
    from clew.core.ids import ConversationId
    from clew.testing import CapturedRequest, ProviderRequest, Reply
    from clew.testing.provider.request import WireFormat
    from tests.context.histories import History

CUTS = ("rewind", "branch", "undo", "none")
#: By whom, or by what, the context is compacted.
WAYS = ("in turn", "by hand", "cleared", "overflow", "none")
#: The beginning of a cleared result.
CLEARED = "[result cleared: "
_WINDOW = 1_000_000
_NEVER = CompactionPolicy(window=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One history, cut after entry ``at`` and compacted at the ``keep``-th message from its end."""

    cut: str
    at: int
    way: str
    keep: int
    form: WireFormat


def runs(last_seq: int) -> Iterator[Run]:
    """Every run of a history with so many entries."""
    for at in range(last_seq + 1):
        for cut, way, keep, form in itertools.product(CUTS, WAYS, range(at + 1), FORMATS):
            if cut != "none" or at == last_seq:
                yield Run(cut=cut, at=at, way=way, keep=keep, form=form)


def some_runs(last_seq: int, *, offset: int) -> Iterator[Run]:
    """One run for each entry, so that cuts, ways and formats take turns."""
    for at in range(last_seq + 1):
        n = at + offset
        yield Run(
            cut=CUTS[n % len(CUTS)],
            at=at,
            way=WAYS[n % len(WAYS)],
            keep=n // len(WAYS) % (at + 1),
            form=FORMATS[n % len(FORMATS)],
        )


class Clearing(Summariser):
    """Clears as the product does; its summaries are as short as they may be."""

    async def clear_results(
        self, messages: Sequence[ModelMessage], *, keep_from: int
    ) -> list[ModelMessage]:
        return await HarnessCompactor().clear_results(messages, keep_from=keep_from)

    async def summarise_messages(
        self,
        messages: Sequence[ModelMessage],
        model: Model,
        *,
        window: int,
        focus: str | None,
        usage: RunUsage,
    ) -> str:
        self.calls += 1
        size = sum(estimate_size(message).tokens for message in messages)
        return SUMMARY if size > LARGE_CONTEXT else "## Done\n."


@dataclass(kw_only=True)
class Bench:
    """An engine, and a provider for each format."""

    house: House
    providers: dict[WireFormat, FakeProvider]
    models: dict[WireFormat, Model]
    switch: WrapperModel
    #: Compacted runs, by the way.
    compacted: Counter[str] = field(default_factory=Counter[str])
    _names: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def write(self, history: History) -> tuple[ConversationId, int]:
        """A conversation with this history, and its last seq."""
        conversation = await self.house.open(local_route(f"talk{next(self._names)}"))
        return conversation, await self.house.store.write(histories.write, conversation, history)

    async def complaints(self, history: History, source: ConversationId, run: Run) -> list[str]:
        """Everything that is wrong with what is sent in a run."""
        conversation = await self._cut(history, source, run)
        said = await self._said(conversation)
        await self._compact_by_hand(conversation, said, run)
        self._expect(said, run)
        self.switch.wrapped = self.models[run.form]
        provider = self.providers[run.form]
        before = len(provider.requests)
        ended = await self.house.say("go on", to=conversation)
        self.house.means.compaction.planner.policy = _NEVER
        provider.script = always(Text("gone on"))
        asked = provider.wait_until_settled()[before:]
        await self._note(conversation, run)
        wrong = [text for captured in asked for text in checker.complaints(captured)]
        if not asked:
            wrong.append(f"nothing was sent: {ended.text}")
        by_hand = run.way == "by hand"
        for captured in asked[-1:]:
            wrong += _faithful(captured, said, by_hand=by_hand)
        return wrong

    async def _cut(self, history: History, source: ConversationId, run: Run) -> ConversationId:
        lifecycle = self.house.engine.sessions
        if run.cut == "branch":
            return await lifecycle.branch_conversation(source, at=run.at)
        conversation, _ = await self.write(history)
        if run.cut == "rewind":
            await self.house.end(await lifecycle.queue_rewind(conversation, to=run.at))
        elif run.cut == "undo":
            # Too far back is refused, and changes nothing.
            await self.house.end(await lifecycle.queue_undo(conversation, back=1 + run.at % 4))
        return conversation

    async def _said(self, conversation: ConversationId) -> list[ModelMessage]:
        found = await self.house.store.read(context.read_head_context, conversation)
        return [codec.load_message(message.message) for message in found.messages]

    async def _compact_by_hand(
        self, conversation: ConversationId, said: Sequence[ModelMessage], run: Run
    ) -> None:
        if run.way != "by hand":
            return
        self.house.means.compaction.planner.policy = _keeping(said, run)
        head = await self.house.head(conversation)
        await self.house.engine.compact(head.id)

    def _expect(self, said: Sequence[ModelMessage], run: Run) -> None:
        """Conditions for the next request."""
        go_on = [*said, histories.said("go on")]
        policy = _NEVER
        if run.way in ("in turn", "overflow"):
            policy = _keeping(go_on, run)
        elif run.way == "cleared":
            tokens = sum(estimate_size(message).tokens for message in go_on)
            policy = _keeping(go_on, run, threshold=0.99 * tokens / _WINDOW)
        if run.way == "overflow":
            policy = CompactionPolicy(window=_WINDOW, keep_recent=policy.keep_recent)
        self.house.means.compaction.planner.policy = policy
        overflowing = iter([Fail("context_overflow")] if run.way == "overflow" else [])

        def script(_: ProviderRequest) -> Reply:
            return next(overflowing, Text("gone on"))

        self.providers[run.form].script = script

    async def _note(self, conversation: ConversationId, run: Run) -> None:
        reasons = [reason for _, reason in await self.house.lineage(conversation)]
        if COMPRESSION in reasons:
            self.compacted[run.way] += 1


def _keeping(
    said: Sequence[ModelMessage], run: Run, *, threshold: float = 1 / _WINDOW
) -> CompactionPolicy:
    """A policy under which the tail is the run's."""
    tail = sum(estimate_size(message).tokens for message in said[-1 - run.keep :])
    return CompactionPolicy(window=_WINDOW, threshold=threshold, keep_recent=(tail + 0.5) / _WINDOW)


def _faithful(
    captured: CapturedRequest, said: Sequence[ModelMessage], *, by_hand: bool
) -> Iterator[str]:
    """
    The request has the messages of the log in order, and the newest that a person said is there.

    Compacted ``by_hand`` that is what was said before, else the message that is sent now.
    """
    assert captured.json is not None
    assert captured.format is not None
    left = iter([_words(bit.kind, bit.name, bit.text) for bit in strict.bits(said)])
    sent = [part for one in checker.sent(captured.json, captured.format) for part in _apart(one)]
    texts = [one.text for one in sent if one.kind == "text"]
    if texts[-1] != "go on":
        yield f"the last word is {texts[-1]!r}"
    if (newest := _newest(said)) not in (None, *texts) and by_hand:
        yield f"what was said last is left out: {newest!r}"
    for one in sent:
        if one.role in ("system", "developer") or one.text == "go on":
            continue
        words = _words(one.kind, one.id or one.text, one.text)
        if not any(_same(known, words) for known in left):
            yield f"out of order, or never said: {words}"


def _apart(one: checker.Sent) -> list[checker.Sent]:
    """Return the entries that became one sent message, without a summary."""
    if one.kind != "text" or one.role != "user":
        return [one]
    rest = one.text.rpartition("summary>")[2]
    return [replace(one, text=text) for text in rest.strip().split("\n\n") if text]


def _newest(said: Sequence[ModelMessage]) -> str | None:
    """Return the last message of a person, not of a tool."""
    parts = [message.parts for message in said if len(message.parts) == 1]
    texts = [part.content for (part,) in parts if isinstance(part, UserPromptPart)]
    return str(texts[-1]) if texts else None


def _words(kind: str, name: str, text: str) -> tuple[str, str, str]:
    return ("text" if kind == "user" else kind, name, text if kind == "result" else "")


def _same(known: tuple[str, str, str], sent: tuple[str, str, str]) -> bool:
    if sent == known or (sent[:2] == known[:2] and sent[2].startswith(CLEARED)):
        return True
    # Messages that must stay and do not fit are shortened in their middle.
    left_out = r"(\n\[… \d+ of \d+ characters left out; [^\n]+ …\]\n|$)"
    begin, mark, end = re.split(left_out, sent[2], maxsplit=1)
    return (
        bool(mark)
        and sent[:2] == known[:2]
        and known[2].startswith(begin)
        and known[2].endswith(end)
    )


@asynccontextmanager
async def open_bench(url: str, home: Path) -> AsyncGenerator[Bench]:
    """One engine over a store, and three providers."""
    async with AsyncExitStack() as stack:
        providers: dict[WireFormat, FakeProvider] = {
            form: stack.enter_context(FakeProvider(always(Text("gone on")))) for form in FORMATS
        }
        models: dict[WireFormat, Model] = {
            form: model_for(form, providers[form]) for form in FORMATS
        }
        switch = WrapperModel(models["chat"])
        house = await stack.enter_async_context(
            open_house(url, home, model=switch, summariser=Clearing())
        )
        yield Bench(house=house, providers=providers, models=models, switch=switch)
        await asyncio.gather(*map(close, models.values()))
