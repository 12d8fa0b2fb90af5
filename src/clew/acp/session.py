"""One session of an editor: a conversation whose events it is told, and its open prompts."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog
from acp import RequestError

from clew.acp.failures import INTERNAL, invalid
from clew.acp.history import iter_copied_entries
from clew.acp.permissions import build_request, describe_unanswered, read_answer
from clew.acp.prompt_blocks import read_prompt
from clew.acp.updates import UpdateTranslator, say
from clew.background import cancel_and_wait
from clew.core.command_text import is_command
from clew.core.rewound import is_rewound
from clew.wire import methods
from clew.wire.errors import CallFailed
from clew.wire.event_models import EntryNotice, StateNotice
from clew.wire.params import CancelParams, Named, RunParams

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from acp.schema import RequestPermissionRequest, StopReason

    from clew.acp.editor import Editor
    from clew.acp.prompt_blocks import PromptBlock, PromptContent
    from clew.tui.client import Resumed, RpcClient
    from clew.wire.event_models import AnyNotice
    from clew.wire.models import ApprovalShape
    from clew.wire.results import InputResult, Opened

log = structlog.get_logger(__name__)

#: Failures of a turn that the protocol has a word for.
_STOPS_BY_CODE: Final[Mapping[str, StopReason]] = {
    "content_filter": "refusal",
    "max_steps": "max_turn_requests",
}
#: How often a question is asked while the editor sends back no answer to it.
_MOST_ASKED: Final = 3


@dataclass(eq=False, slots=True)
class _Prompt:
    """A prompt that is not answered yet."""

    inbox_id: str | None = None
    cancelled: bool = False


class EditorSession:
    """
    A conversation that an editor has opened.

    It is followed until it is closed, so that an editor also sees what other fronts say.
    """

    def __init__(
        self, client: RpcClient, editor: Editor, opened: Opened, *, id: str, workspace: str
    ) -> None:
        #: The name that the editor has for it.
        self.id = id
        self.conversation = opened.conversation.id
        self._client, self._editor, self._opened = client, editor, opened
        self._workspace = workspace
        self._translator = UpdateTranslator(workspace=workspace)
        self._prompts: list[_Prompt] = []
        self._reading = asyncio.Lock()
        self._questions: dict[str, asyncio.Task[None]] = {}
        self._told = opened.conversation.entries
        self._progress = asyncio.Condition()
        self._following: asyncio.Task[None] | None = None
        self._ended = False

    async def start(self, *, replay: bool) -> None:
        """Follow the conversation; with ``replay`` its history has been told when this returns."""
        if replay:
            self._told = 0
            async for entry in iter_copied_entries(self._client, self._opened.conversation.origin):
                for update in self._translator.translate_entry(entry):
                    await self._editor.update(self.id, update)
        self._following = asyncio.create_task(self._follow(), name="acp-session")
        await self._wait_until_told(self._opened.conversation.entries)

    async def close(self) -> None:
        """Follow it no more, and withdraw its questions."""
        tasks = list(self._questions.values())
        if self._following is not None:
            tasks.append(self._following)
        await cancel_and_wait(*tasks)

    # Events

    async def _follow(self) -> None:
        try:
            async with self._client.follow(self.conversation, after=self._told) as events:
                async for event in events:
                    await self._tell(event)
            await self.say("\n\n(This conversation was deleted.)")
        except CallFailed as error:
            await self._editor.update(self.id, say(f"\n\n({error})"))
        finally:
            self._ended = True
            async with self._progress:
                self._progress.notify_all()

    async def _tell(self, event: AnyNotice | Resumed) -> None:
        if not self._is_void(event):
            for update in self._translator.translate(event):
                await self._editor.update(self.id, update)
        if isinstance(event, StateNotice):
            await self._update_questions(event.state.approvals)
        if isinstance(event, EntryNotice):
            await self._mark_told(event.seq)

    def _is_void(self, event: AnyNotice | Resumed) -> bool:
        """Return whether it is an entry that was rewound before the session was opened."""
        return isinstance(event, EntryNotice) and is_rewound(
            event.seq, self._opened.state.taken_back
        )

    async def _mark_told(self, seq: int) -> None:
        async with self._progress:
            self._told = seq
            self._progress.notify_all()

    async def _wait_until_told(self, seq: int) -> None:
        """Wait until the editor was told all entries up to this one."""
        async with self._progress:
            await self._progress.wait_for(lambda: self._told >= seq or self._ended)

    # Questions

    async def _update_questions(self, open_: list[ApprovalShape]) -> None:
        """Ask what is new, and withdraw what was answered elsewhere."""
        wanted = {question.id: question for question in open_}
        gone = [self._questions.pop(id_) for id_ in list(self._questions) if id_ not in wanted]
        await cancel_and_wait(*gone)
        for id_, question in wanted.items():
            if id_ not in self._questions:
                self._questions[id_] = asyncio.create_task(self._ask(question), name="acp-question")

    async def _ask(self, question: ApprovalShape) -> None:
        call = self._translator.find_call(question.call)
        request = build_request(self.id, question, call=call, workspace=self._workspace)
        try:
            for _ in range(_MOST_ASKED):
                if await self._ask_once(question, request):
                    return
            await self.say(describe_unanswered(question))
        except (CallFailed, ConnectionError) as error:
            # It stays open: the first answer counts, and other fronts ask as well.
            log.warning("question_not_answered", approval=question.id, error=str(error))

    async def _ask_once(self, question: ApprovalShape, request: RequestPermissionRequest) -> bool:
        """Ask the editor, and return whether what it sent back was an answer."""
        try:
            answer = read_answer(question, await self._editor.ask(request))
        except (RequestError, ValueError) as error:
            log.warning("question_not_answered", approval=question.id, error=str(error))
            return False
        if answer is not None:
            await self._client.call(methods.RESPOND, answer)
        return True

    # Prompts

    async def prompt(self, blocks: Sequence[PromptBlock], *, key: str | None) -> StopReason:
        """
        Submit a message or run a command, and wait until all of its answer was told.

        :raises CallFailed: if it was refused
        :raises RequestError: if its turn has failed, or if a command has a key
        """
        prompt = _Prompt()
        self._prompts.append(prompt)
        try:
            async with self._reading:  # in their order, also where one has large files
                content = await asyncio.to_thread(read_prompt, blocks)
            if prompt.cancelled:
                return "cancelled"
            if not content.files and is_command(content.text):
                _refuse_key(key)
                return await self._run_command(prompt, content.text.strip())
            return await self._submit(prompt, content, key)
        finally:
            self._prompts.remove(prompt)

    async def _submit(self, prompt: _Prompt, content: PromptContent, key: str | None) -> StopReason:
        text, with_files = content.text, bool(content.files)
        self._translator.expect_message(text, with_files=with_files)
        try:
            submitted = await self._client.submit(
                self.conversation, text, attachments=content.files or None, key=key
            )
            return await self._await_stop(prompt, submitted.inbox_id)
        finally:
            self._translator.forget_message(text, with_files=with_files)

    async def _run_command(self, prompt: _Prompt, text: str) -> StopReason:
        params = RunParams(text=text, conversation=self.conversation)
        reply = await self._client.call(methods.RUN, params)
        await self.say(reply.text)
        if reply.conversation not in (None, self.conversation):
            await self.say(f"\n\n(To continue there, open the session {reply.conversation}.)")
        if reply.inbox_id is None:
            return "end_turn"
        return await self._await_stop(prompt, reply.inbox_id)

    async def _await_stop(self, prompt: _Prompt, inbox_id: str) -> StopReason:
        prompt.inbox_id = inbox_id
        if prompt.cancelled:
            await self._stop(inbox_id)
        result = await self._client.await_result(inbox_id)
        await self._wait_until_told(result.seq)
        return _find_stop_reason(result)

    async def say(self, text: str) -> None:
        """Tell the editor a text of this program."""
        await self._editor.update(self.id, say(text))

    async def cancel(self) -> None:
        """Stop the prompts of this editor; without one, whatever runs."""
        if not self._prompts:
            await self._client.call(methods.INTERRUPT, Named(conversation=self.conversation))
        await self.cancel_prompts()

    async def cancel_prompts(self) -> None:
        """Stop the prompts of this editor."""
        for prompt in list(self._prompts):
            prompt.cancelled = True
            # One without an id is being submitted, and is stopped right after.
            if prompt.inbox_id is not None:
                await self._stop(prompt.inbox_id)

    async def _stop(self, inbox_id: str) -> None:
        """Take a message back that still waits, or stop its turn."""
        with suppress(CallFailed):  # it may be answered by now
            done = await self._client.call(methods.CANCEL, CancelParams(inbox_id=inbox_id))
            if not done.cancelled:
                await self._client.call(methods.INTERRUPT, Named(conversation=self.conversation))


def _refuse_key(key: str | None) -> None:
    """Refuse the key of a command: it would promise that a repetition does nothing."""
    if key is not None:
        raise invalid("a command is not carried out under a key: send it without a key, once")


def _find_stop_reason(result: InputResult) -> StopReason:
    if result.outcome == "cancelled" or result.turn_outcome == "cancelled":
        return "cancelled"
    if result.outcome == "rejected":
        raise RequestError(INTERNAL, result.note or "the message was refused")
    if result.turn_outcome == "failed":
        if (reason := _STOPS_BY_CODE.get(result.code or "")) is not None:
            return reason
        raise RequestError(INTERNAL, result.text, {"code": result.code})
    return "max_tokens" if result.cut else "end_turn"
