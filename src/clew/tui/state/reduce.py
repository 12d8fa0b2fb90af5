"""The reducer: what a view becomes when something is told. Pure, and the same told twice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from clew.tui.state.blocks import marked, progress_of, results_of, with_blocks
from clew.tui.state.view import Block, Link, Live, Progress, Result, Tool, View
from clew.wire.notices import (
    AnyNotice,
    DeletedNotice,
    DeltaNotice,
    EndedNotice,
    EntryNotice,
    RetractedNotice,
    SnapshotNotice,
    StateNotice,
    ToolNotice,
    TurnBegunNotice,
    TurnClosedNotice,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clew.tui.state.view import Sending
    from clew.wire.records import ConversationShape, EntryShape, StateShape, UsageShape
    from clew.wire.results import AgentShape


def opened(view: View, conversation: ConversationShape, state: StateShape) -> View:
    """
    The client is attached to a conversation: again, or to another one.

    What is shown of it stays, so that it goes on after the last entry that was told.
    """
    same = view.conversation is not None and view.conversation.id == conversation.id
    seq = conversation.entries
    kept = view if same else View(first=seq + 1, seq=seq, agent=view.agent)
    return replace(
        kept,
        answered=view.answered,
        sending=view.sending,
        link=Link.UP,
        trouble="",
        conversation=conversation,
        state=state,
        blocks=marked(kept.blocks, state),
        gap=False,
        live=Live(),
    )


def caught_up(view: View) -> View:
    """The client subscribes after the last entry: what was provisional comes again."""
    return replace(view, gap=False, live=Live())


def found(view: View) -> View:
    """The connection is back."""
    return replace(view, link=Link.UP, trouble="")


def lost(view: View, why: str) -> View:
    """The connection is gone; what was provisional comes again."""
    return replace(view, link=Link.LOST, trouble=why, live=Live())


def troubled(view: View, why: str) -> View:
    """Something that was asked for could not be; "" once it is of no interest any more."""
    if view.trouble == why or (not why and view.link is Link.LOST):
        return view  # why nothing is reached stays of interest
    return replace(view, trouble=why)


def described(view: View, agent: AgentShape) -> View:
    """Who answers is known."""
    return replace(view, agent=agent)


def sending(view: View, items: tuple[Sending, ...]) -> View:
    """Other texts are on their way to the server."""
    return replace(view, sending=items)


def answered(view: View, approval: str, *, given: bool) -> View:
    """A question was answered here; or the answer did not get there, and it is open again."""
    kept = view.answered | {approval} if given else view.answered - {approval}
    return replace(view, answered=kept)


def measured(view: View, conversation: ConversationShape, usage: UsageShape) -> View:
    """How much was used, and how the lineage looks now."""
    return replace(view, conversation=conversation, usage=usage)


def older(view: View, entries: Sequence[EntryShape]) -> View:
    """Entries from before the first one that is loaded; without any, there are none."""
    fitting = [entry for entry in entries if entry.seq < view.first]
    if not fitting:
        return replace(view, first=1)
    before: tuple[Block, ...] = ()
    for entry in fitting:
        before = with_blocks(before, entry)
    results = [result for entry in fitting for result in results_of(entry)]
    before, strays = _with_results(marked(before, view.state), (*results, *view.strays))
    return replace(view, blocks=before + view.blocks, strays=strays, first=fitting[0].seq)


def told(view: View, notice: AnyNotice) -> View:
    """What an event makes of the view; nothing for what was told before or elsewhere."""
    if view.conversation is None or notice.conversation != view.conversation.id:
        return view
    return _RULES[type(notice)](view, notice)


def _entry(view: View, notice: EntryNotice) -> View:
    if notice.seq <= view.seq:
        return view
    if notice.seq > view.seq + 1:
        return replace(view, gap=True)
    added = marked(with_blocks(view.blocks, notice), view.state)
    blocks, strays = _with_results(added, results_of(notice))
    return replace(
        view,
        blocks=blocks,
        strays=view.strays + strays,
        seq=notice.seq,
        first=min(view.first, notice.seq),
        live=Live(turn=view.live.turn),
    )


def _with_results(
    blocks: tuple[Block, ...], results: Sequence[Result]
) -> tuple[tuple[Block, ...], tuple[Result, ...]]:
    """The blocks with what their calls gave back, and what belongs to none of them."""
    strays: list[Result] = []
    for result in results:
        changed = _with_tool(
            blocks, result.call, lambda t, r=result: replace(t, result=r.text, progress=r.progress)
        )
        if changed is blocks:
            strays.append(result)
        blocks = changed
    return blocks, tuple(strays)


def _with_tool(
    blocks: tuple[Block, ...], call: str, change: Callable[[Tool], Tool]
) -> tuple[Block, ...]:
    """The blocks with one call changed, the newest of that id."""
    for number in range(len(blocks) - 1, -1, -1):
        block = blocks[number]
        if block.tool is not None and block.tool.call == call:
            changed = replace(block, tool=change(block.tool))
            return (*blocks[:number], changed, *blocks[number + 1 :])
    return blocks


def _delta(view: View, notice: DeltaNotice) -> View:
    live = view.live
    if notice.kind == "text":
        return replace(view, live=replace(live, turn=notice.turn, text=live.text + notice.text))
    thinking = live.thinking + notice.text
    return replace(view, live=replace(live, turn=notice.turn, thinking=thinking))


def _snapshot(view: View, notice: SnapshotNotice) -> View:
    return replace(view, live=Live(turn=notice.turn, text=notice.text))


def _retracted(view: View, notice: RetractedNotice) -> View:
    return replace(view, live=Live(turn=notice.turn))


def _tool(view: View, notice: ToolNotice) -> View:
    progress = progress_of(notice.status)
    return replace(
        view,
        blocks=_with_tool(
            view.blocks,
            notice.call,
            # Its result may have been told already.
            lambda tool: replace(tool, progress=max(tool.progress, progress, key=_ORDER.index)),
        ),
    )


_ORDER = [Progress.ASKED, Progress.RUNNING, Progress.DONE, Progress.FAILED, Progress.DENIED]


def _begun(view: View, notice: TurnBegunNotice) -> View:
    return replace(view, live=Live(turn=notice.turn))


def _closed(view: View, notice: TurnClosedNotice) -> View:
    return replace(view, live=Live(), trouble=notice.error or "")


def _state(view: View, notice: StateNotice) -> View:
    if view.state is not None and view.state.taken_back == notice.state.taken_back:
        return replace(view, state=notice.state)
    return replace(view, state=notice.state, blocks=marked(view.blocks, notice.state))


def _deleted(view: View, _notice: DeletedNotice) -> View:
    return replace(view, gone=True, live=Live())


def _ended(view: View, _notice: EndedNotice) -> View:
    return replace(view, gap=True)


_RULES: dict[type, Callable[[View, AnyNotice], View]] = {
    EntryNotice: _entry,
    DeltaNotice: _delta,
    SnapshotNotice: _snapshot,
    RetractedNotice: _retracted,
    ToolNotice: _tool,
    TurnBegunNotice: _begun,
    TurnClosedNotice: _closed,
    StateNotice: _state,
    DeletedNotice: _deleted,
    EndedNotice: _ended,
}  # pyright: ignore[reportAssignmentType]  (each rule takes the notice that it stands beside)
