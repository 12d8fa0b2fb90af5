"""Reducer: returns the view after an event. Pure and idempotent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.record import replace
from clew.tui.state.blocks import append_entry, extract_results, mark_rewound, progress_from_status
from clew.tui.state.view import (
    Block,
    LinkState,
    LiveResponse,
    ToolCallResult,
    ToolCallView,
    ToolProgress,
    ViewState,
)
from clew.wire.event_models import (
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

    from clew.tui.state.view import PendingText
    from clew.wire.models import ConversationShape, EntryShape, StateShape, UsageShape
    from clew.wire.results import AgentShape


def open_conversation(
    view: ViewState, conversation: ConversationShape, state: StateShape
) -> ViewState:
    """
    Show a conversation that the client has opened: the same one again, or another.

    Blocks of the same conversation stay, so that it continues after the last entry.
    """
    seq = conversation.entries
    kept = (
        view if view.shows(conversation.id) else ViewState(first=seq + 1, seq=seq, agent=view.agent)
    )
    return replace(
        kept,
        answered=view.answered,
        sending=view.sending,
        link=LinkState.UP,
        trouble="",
        conversation=conversation,
        state=state,
        blocks=mark_rewound(kept.blocks, state),
        gap=False,
        live=LiveResponse(),
    )


def reset_live(view: ViewState) -> ViewState:
    """Discard provisional text before a new subscription."""
    return replace(view, gap=False, live=LiveResponse())


def mark_connected(view: ViewState) -> ViewState:
    """Mark the connection as restored."""
    return replace(view, link=LinkState.UP, trouble="")


def mark_disconnected(view: ViewState, why: str) -> ViewState:
    """Mark the connection as lost; provisional text is discarded."""
    return replace(view, link=LinkState.LOST, trouble=why, live=LiveResponse())


def set_error(view: ViewState, why: str) -> ViewState:
    """Show an error; "" clears it, except while disconnected."""
    if view.trouble == why or (not why and view.link is LinkState.LOST):
        return view  # the reason for the lost connection stays visible
    return replace(view, trouble=why)


def set_agent(view: ViewState, agent: AgentShape) -> ViewState:
    """Set the agent's description."""
    return replace(view, agent=agent)


def set_sending(view: ViewState, items: tuple[PendingText, ...]) -> ViewState:
    """Set the texts that are being sent."""
    return replace(view, sending=items)


def mark_answered(view: ViewState, approval: str, *, given: bool) -> ViewState:
    """Hide an answered approval, or show it again if the answer failed."""
    kept = view.answered | {approval} if given else view.answered - {approval}
    return replace(view, answered=kept)


def set_usage(view: ViewState, conversation: ConversationShape, usage: UsageShape) -> ViewState:
    """Set the usage and the lineage; a late answer about another conversation changes nothing."""
    if not view.shows(conversation.id):
        return view
    return replace(view, conversation=conversation, usage=usage)


def set_commands(view: ViewState, conversation: str, commands: tuple[str, ...]) -> ViewState:
    """Set the commands in the background; those of another conversation change nothing."""
    if not view.shows(conversation) or view.commands == commands:
        return view
    return replace(view, commands=commands)


def prepend_entries(
    view: ViewState,
    conversation: str,
    entries: Sequence[EntryShape],
    *,
    before: int,
    state: StateShape | None = None,
) -> ViewState:
    """
    Prepend the entries before one seq; if there are none, mark the start as reached.

    A late answer, about another conversation or another seq, changes nothing. ``state`` is the
    original's, whose entries a branch has copied.
    """
    if not view.shows(conversation) or view.first != before:
        return view
    fitting = [entry for entry in entries if entry.seq < view.first]
    if not fitting:
        return replace(view, first=1 if view.first > 1 else view.start)
    added: tuple[Block, ...] = ()
    for entry in fitting:
        added = append_entry(added, entry)
    results = [result for entry in fitting for result in extract_results(entry)]
    added, strays = _apply_results(
        mark_rewound(added, state or view.state), (*results, *view.strays)
    )
    return replace(view, blocks=added + view.blocks, strays=strays, first=fitting[0].seq)


def apply_event(view: ViewState, notice: AnyNotice) -> ViewState:
    """Return the view after an event; unchanged if it is a repeat or from elsewhere."""
    if not view.shows(notice.conversation):
        return view
    return _HANDLERS[type(notice)](view, notice)


def _apply_entry(view: ViewState, notice: EntryNotice) -> ViewState:
    if notice.seq <= view.seq:
        return view
    if notice.seq > view.seq + 1:
        return replace(view, gap=True)
    added = mark_rewound(append_entry(view.blocks, notice), view.state)
    blocks, strays = _apply_results(added, extract_results(notice))
    return replace(
        view,
        blocks=blocks,
        strays=view.strays + strays,
        seq=notice.seq,
        first=min(view.first, notice.seq),
        live=LiveResponse(turn=view.live.turn),
    )


def _apply_results(
    blocks: tuple[Block, ...], results: Sequence[ToolCallResult]
) -> tuple[tuple[Block, ...], tuple[ToolCallResult, ...]]:
    """Return the blocks with the results of their calls, and the unmatched results."""
    strays: list[ToolCallResult] = []
    for result in results:
        changed = _update_tool(
            blocks, result.call, lambda t, r=result: replace(t, result=r.text, progress=r.progress)
        )
        if changed is blocks:
            strays.append(result)
        blocks = changed
    return blocks, tuple(strays)


def _update_tool(
    blocks: tuple[Block, ...], call: str, change: Callable[[ToolCallView], ToolCallView]
) -> tuple[Block, ...]:
    """Return the blocks with one call changed, the newest of that id."""
    for number in range(len(blocks) - 1, -1, -1):
        block = blocks[number]
        if block.tool is not None and block.tool.call == call:
            changed = replace(block, tool=change(block.tool))
            return (*blocks[:number], changed, *blocks[number + 1 :])
    return blocks


def _apply_delta(view: ViewState, notice: DeltaNotice) -> ViewState:
    live = view.live
    if notice.kind == "text":
        return replace(view, live=replace(live, turn=notice.turn, text=live.text + notice.text))
    thinking = live.thinking + notice.text
    return replace(view, live=replace(live, turn=notice.turn, thinking=thinking))


def _apply_snapshot(view: ViewState, notice: SnapshotNotice) -> ViewState:
    return replace(view, live=LiveResponse(turn=notice.turn, text=notice.text))


def _apply_retraction(view: ViewState, notice: RetractedNotice) -> ViewState:
    return replace(view, live=LiveResponse(turn=notice.turn))


def _apply_tool(view: ViewState, notice: ToolNotice) -> ViewState:
    progress = progress_from_status(notice.status)
    return replace(
        view,
        blocks=_update_tool(
            view.blocks,
            notice.call,
            # Its result may have arrived already.
            lambda tool: replace(
                tool, progress=max(tool.progress, progress, key=_PROGRESS_ORDER.index)
            ),
        ),
    )


_PROGRESS_ORDER = [
    ToolProgress.ASKED,
    ToolProgress.RUNNING,
    ToolProgress.DONE,
    ToolProgress.FAILED,
    ToolProgress.DENIED,
]


def _apply_turn_start(view: ViewState, notice: TurnBegunNotice) -> ViewState:
    return replace(view, live=LiveResponse(turn=notice.turn))


def _apply_turn_end(view: ViewState, notice: TurnClosedNotice) -> ViewState:
    return replace(view, live=LiveResponse(), trouble=notice.error or "")


def _apply_state(view: ViewState, notice: StateNotice) -> ViewState:
    if view.state is not None and view.state.taken_back == notice.state.taken_back:
        return replace(view, state=notice.state)
    return replace(view, state=notice.state, blocks=mark_rewound(view.blocks, notice.state))


def _apply_deletion(view: ViewState, _notice: DeletedNotice) -> ViewState:
    return replace(view, gone=True, live=LiveResponse())


def _apply_stream_end(view: ViewState, _notice: EndedNotice) -> ViewState:
    return replace(view, gap=True)


_HANDLERS: dict[type, Callable[[ViewState, AnyNotice], ViewState]] = {
    EntryNotice: _apply_entry,
    DeltaNotice: _apply_delta,
    SnapshotNotice: _apply_snapshot,
    RetractedNotice: _apply_retraction,
    ToolNotice: _apply_tool,
    TurnBegunNotice: _apply_turn_start,
    TurnClosedNotice: _apply_turn_end,
    StateNotice: _apply_state,
    DeletedNotice: _apply_deletion,
    EndedNotice: _apply_stream_end,
}  # pyright: ignore[reportAssignmentType]  (each handler takes the notice type of its key)
