"""
Events of a conversation as updates of an editor's session; pure.

Text is streamed as it arrives and compared with the stored entry, which counts. An editor
cannot take text back: what has become void is said to be so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from acp.schema import (
    AgentMessageChunk,
    AgentThoughtChunk,
    SessionInfoUpdate,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    UserMessageChunk,
)

from clew.acp import tool_calls
from clew.api.stream_reconciler import RESPONSE_SEPARATOR, StreamedText
from clew.tui.state.blocks import build_blocks, extract_results, progress_from_status
from clew.tui.state.view import BlockKind, ToolProgress
from clew.wire.event_models import (
    DeltaNotice,
    EntryNotice,
    RetractedNotice,
    SnapshotNotice,
    StateNotice,
    ToolNotice,
    TurnBegunNotice,
    TurnClosedNotice,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.tui.client import Resumed
    from clew.tui.state.blocks import EntryLike
    from clew.tui.state.view import Block
    from clew.wire.event_models import AnyNotice

SessionUpdate = (
    AgentMessageChunk
    | AgentThoughtChunk
    | SessionInfoUpdate
    | ToolCallProgress
    | ToolCallStart
    | UserMessageChunk
)

_VOID: Final = "(interrupted; ignore the text above{})"
_ENDED: Final = (ToolProgress.DONE, ToolProgress.FAILED, ToolProgress.DENIED)


def say(text: str) -> AgentMessageChunk:
    """Return a text of the agent."""
    return AgentMessageChunk(session_update="agent_message_chunk", content=_text(text))


def _text(text: str) -> TextContentBlock:
    return TextContentBlock(type="text", text=text)


class UpdateTranslator:
    """Translator of one conversation's events, in order."""

    def __init__(self, *, workspace: str) -> None:
        self._workspace = workspace
        self._text, self._thought = StreamedText(), StreamedText()
        #: Messages that the editor shows already, since they were typed there; with files, the
        #: stored text ends with their names.
        self._typed: list[tuple[str, bool]] = []
        #: The newest call of each id, under a key that is unique in the session.
        self._calls: dict[str, str] = {}
        self._ended: set[str] = set()
        self._title: str | None = None

    def expect_message(self, text: str, *, with_files: bool) -> None:
        """Leave out the next message with this text: the editor shows it."""
        self._typed.append((text, with_files))

    def forget_message(self, text: str, *, with_files: bool) -> None:
        """Expect a message no more."""
        if (text, with_files) in self._typed:
            self._typed.remove((text, with_files))

    def find_call(self, call: str) -> str | None:
        """Return the key of the newest call of this id."""
        return self._calls.get(call)

    def translate(self, event: AnyNotice | Resumed) -> Iterator[SessionUpdate]:
        """Yield the updates for an event."""
        match event:
            case EntryNotice():
                yield from self.translate_entry(event)
            case DeltaNotice():
                yield self._add_piece(event)
            case SnapshotNotice(text=text):
                yield from self._catch_up(text)
            case RetractedNotice(reason=reason):
                yield from self._retract(f": {reason}")
            case TurnBegunNotice():
                yield from self._retract("")
            case ToolNotice():
                yield from self._update_call(event)
            case StateNotice(state=state) if state.title != self._title:
                self._title = state.title
                yield SessionInfoUpdate(session_update="session_info_update", title=state.title)
            case TurnClosedNotice():
                self._text, self._thought = StreamedText(), StreamedText()
            case _:
                pass

    def translate_entry(self, entry: EntryLike) -> Iterator[SessionUpdate]:
        """Yield the updates for a stored entry, without what was streamed before."""
        # An attempt that has failed was retracted when it did.
        blocks = [] if entry.kind == "attempt" else build_blocks(entry)
        if entry.role == "assistant" and entry.kind == "message":
            yield from self._complete_response(entry, blocks)
        else:
            for block in blocks:
                yield from self._show_block(block)
        for result in extract_results(entry):
            if (key := self._calls.get(result.call)) is not None:
                self._ended.add(key)
                yield ToolCallProgress(
                    session_update="tool_call_update",
                    tool_call_id=key,
                    status=tool_calls.status_of(result.progress),
                    content=[tool_calls.text_content(result.text)],
                    raw_output=result.text,
                )

    def _show_block(self, block: Block) -> Iterator[SessionUpdate]:
        if block.kind is not BlockKind.USER:
            yield say(f"{RESPONSE_SEPARATOR}({block.text})")
        elif not self._was_typed(block.text):
            content = _text(block.text)
            yield UserMessageChunk(session_update="user_message_chunk", content=content)

    def _was_typed(self, text: str) -> bool:
        for typed in self._typed:
            said, with_files = typed
            if text == said or (with_files and text.startswith(f"{said}\n")):
                self._typed.remove(typed)
                return True
        return False

    def _complete_response(self, entry: EntryLike, blocks: list[Block]) -> Iterator[SessionUpdate]:
        thoughts = [block.text for block in blocks if block.kind is BlockKind.THINKING]
        if rest := self._thought.reconcile("\n".join(thoughts)):
            yield self._think(rest)
        rest = self._text.reconcile(entry.text)
        if rest is None:
            rest = f"{RESPONSE_SEPARATOR}{_VOID.format('')}{RESPONSE_SEPARATOR}{entry.text}"
        if rest:
            yield say(rest)
        for block in blocks:
            yield from self._start_call(block)

    def _start_call(self, block: Block) -> Iterator[SessionUpdate]:
        if (tool := block.tool) is None:
            return
        # A branch has entries of its original, with numbers of their own.
        key = self._calls[tool.call] = f"{block.session}.{block.key}"
        yield ToolCallStart(
            session_update="tool_call",
            tool_call_id=key,
            title=tool_calls.title_of(tool.name, tool.args),
            kind=tool_calls.kind_of(tool.name),
            status="pending",
            raw_input=tool_calls.parse_arguments(tool.args),
            content=list(tool_calls.find_changes(tool.name, tool.args, workspace=self._workspace))
            or None,
            locations=tool_calls.find_locations(tool.args, workspace=self._workspace),
        )

    def _update_call(self, event: ToolNotice) -> Iterator[SessionUpdate]:
        key, progress = self._calls.get(event.call), progress_from_status(event.status)
        if key is None or key in self._ended:
            return
        if progress in _ENDED:
            self._ended.add(key)
        yield ToolCallProgress(
            session_update="tool_call_update",
            tool_call_id=key,
            status=tool_calls.status_of(progress),
        )

    def _add_piece(self, event: DeltaNotice) -> AgentMessageChunk | AgentThoughtChunk:
        if event.kind == "text":
            return say(self._text.add_piece(event.text))
        return self._think(self._thought.add_piece(event.text))

    def _catch_up(self, text: str) -> Iterator[SessionUpdate]:
        """Yield what is missing of the text so far, which a new subscription begins with."""
        sent = self._text.sent
        if not text.startswith(sent):
            yield from self._retract("")
            sent = ""
        if missing := text[len(sent) :]:
            yield say(self._text.add_piece(missing))

    def _retract(self, reason: str) -> Iterator[SessionUpdate]:
        """Say that the text of the current response is void, if some was sent."""
        void = self._text.has_partial_response
        self._text, self._thought = StreamedText(), StreamedText()
        if void:
            yield say(f"{RESPONSE_SEPARATOR}{_VOID.format(reason)}{RESPONSE_SEPARATOR}")

    def _think(self, text: str) -> AgentThoughtChunk:
        return AgentThoughtChunk(session_update="agent_thought_chunk", content=_text(text))
