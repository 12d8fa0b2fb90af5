"""
The methods that an editor calls.

A session is a conversation under its id; a prompt is a message with a key; what is told comes
from the events that every client gets. Nothing is kept here that the server does not have.
"""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import acp
from acp.schema import (
    AgentCapabilities,
    AvailableCommand,
    AvailableCommandInput,
    CloseSessionResponse,
    ForkSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    UnstructuredCommandInput,
)

from clew.acp.failures import RESOURCE_NOT_FOUND, invalid
from clew.acp.model_option import MODEL_OPTION, build_options
from clew.acp.session import EditorSession
from clew.acp.workspaces import read_workspaces
from clew.distribution import VERSION
from clew.wire import methods
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.meta import KEY_FIELD
from clew.wire.params import (
    BranchParams,
    ListParams,
    ModelListParams,
    ModelSetParams,
    Named,
    NoParams,
    OpenParams,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from acp.schema import SessionConfigOptionSelect

    from clew.acp.editor import Editor
    from clew.acp.prompt_blocks import PromptBlock
    from clew.acp.workspaces import LocateFolder, Workspaces
    from clew.tui.client import RpcClient
    from clew.wire.models import ConversationShape
    from clew.wire.results import Opened

#: An editor opens sessions itself: here they have no name that a command could move.
_OF_NAMES: Final = ("new", "resume", "sessions")
_PAGE_SIZE: Final = 50


class EditorAgent:
    """The methods of the protocol; each names the sessions that it is about."""

    def __init__(
        self, client: RpcClient, editor: Editor, *, agent: str | None, locate: LocateFolder
    ) -> None:
        self._client, self._editor = client, editor
        self._agent, self._locate = agent, locate
        self._sessions: dict[str, EditorSession] = {}

    async def close(self) -> None:
        """Close the sessions; their conversations stay."""
        for session in self._sessions.values():
            await session.close()

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        return InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(
                    image=True, audio=False, embedded_context=True
                ),
                mcp_capabilities=McpCapabilities(http=False, sse=False),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    fork=SessionForkCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                ),
            ),
            agent_info=Implementation(name="clew", title="Clew", version=VERSION),
            auth_methods=[],
        )

    async def authenticate(self, method_id: str, **_: Any) -> None:
        raise invalid(
            "there is nothing to sign in to: whoever may read this CLEW_HOME may use Clew"
        )

    # Sessions

    async def new_session(
        self, cwd: str, mcp_servers: Sequence[Any] | None = None, **meta: Any
    ) -> NewSessionResponse:
        _check_folder(cwd)
        opened = await self._open(self._make_name(meta))
        id_ = opened.conversation.id
        options = await self._start(opened, id_, cwd=cwd, servers=mcp_servers, replay=False)
        return NewSessionResponse(session_id=id_, config_options=list(options))

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> LoadSessionResponse:
        options = await self._reopen(session_id, cwd, mcp_servers, replay=True)
        return LoadSessionResponse(config_options=list(options))

    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> ResumeSessionResponse:
        options = await self._reopen(session_id, cwd, mcp_servers, replay=False)
        return ResumeSessionResponse(config_options=list(options))

    async def fork_session(
        self, session_id: str, cwd: str, mcp_servers: Sequence[Any] | None = None, **meta: Any
    ) -> ForkSessionResponse:
        _check_folder(cwd)
        found = await self._find(session_id)
        opened = await self._open((await self._branch(found.id, meta)).id)
        id_ = opened.conversation.id
        options = await self._start(opened, id_, cwd=cwd, servers=mcp_servers, replay=False)
        return ForkSessionResponse(session_id=id_, config_options=list(options))

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> ListSessionsResponse:
        page = await self._client.call(methods.LIST, ListParams(cursor=cursor, limit=_PAGE_SIZE))
        folders = await read_workspaces(self._client, self._locate)
        return ListSessionsResponse(
            sessions=[_describe(one, cwd, folders) for one in page.items], next_cursor=page.next
        )

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        session = self._get(session_id)
        await session.cancel_prompts()
        del self._sessions[session_id]
        await session.close()
        await self._client.call(methods.CLOSE, Named(conversation=session.conversation))
        return CloseSessionResponse()

    async def _find(self, name: str) -> ConversationShape:
        """
        Return a conversation; a name alone opens none.

        :raises CallFailed: if there is none that this person may see
        """
        return (await self._client.call(methods.STATUS, Named(conversation=name))).conversation

    async def _open(self, name: str) -> Opened:
        return await self._client.call(methods.OPEN, OpenParams(conversation=name))

    def _make_name(self, meta: dict[str, Any]) -> str:
        """Return the name of a new conversation: the same for the same key."""
        key = meta.get(KEY_FIELD)
        unique = uuid4().hex if key is None else sha256(str(key).encode()).hexdigest()[:32]
        name = f"acp-{unique}"
        return name if self._agent is None else f"agent:{self._agent}:local:{name}"

    async def _branch(self, source: str, meta: dict[str, Any]) -> ConversationShape:
        """Branch off, once for a key."""
        if KEY_FIELD not in meta:
            return await self._client.call(methods.BRANCH, BranchParams(conversation=source))
        name = self._make_name({KEY_FIELD: f"{source} {meta[KEY_FIELD]}"})
        try:
            return await self._find(name)
        except CallFailed as error:
            if error.code != ErrorCode.NOT_FOUND:
                raise
        params = BranchParams(conversation=source, name=name)
        return await self._client.call(methods.BRANCH, params)

    async def _reopen(
        self, session_id: str, cwd: str, servers: Sequence[Any] | None, *, replay: bool
    ) -> Sequence[SessionConfigOptionSelect]:
        _check_folder(cwd)
        opened = await self._open((await self._find(session_id)).id)
        return await self._start(opened, session_id, cwd=cwd, servers=servers, replay=replay)

    async def _start(
        self,
        opened: Opened,
        session_id: str,
        *,
        cwd: str,
        servers: Sequence[Any] | None,
        replay: bool,
    ) -> Sequence[SessionConfigOptionSelect]:
        """Follow a conversation as a session, and return its options."""
        conversation = opened.conversation
        folders = await read_workspaces(self._client, self._locate)
        session = EditorSession(
            self._client,
            self._editor,
            opened,
            id=session_id,
            workspace=str(folders.find(conversation.scope)),
        )
        await self._replace(session)
        await session.start(replay=replay)
        remarks = [
            *filter(None, [folders.explain(conversation.scope, cwd)]),
            *_explain_servers(servers or ()),
        ]
        options = await self._read_options(conversation.id)
        introduce = partial(
            self._editor.introduce, session_id, await self._list_commands(), remarks
        )
        self._editor.run_after_response(introduce)
        return options

    async def _list_commands(self) -> list[AvailableCommand]:
        found = await self._client.call(methods.COMMANDS, NoParams())
        return [
            AvailableCommand(
                name=one.name,
                description=one.help,
                input=AvailableCommandInput(UnstructuredCommandInput(hint=one.arguments))
                if one.arguments
                else None,
            )
            for one in found.items
            if one.name not in _OF_NAMES
        ]

    async def _replace(self, session: EditorSession) -> None:
        """Let a session take the place of others of the same conversation: one is followed."""
        for id_, other in list(self._sessions.items()):
            if other.conversation == session.conversation:
                del self._sessions[id_]
                await other.close()
        self._sessions[session.id] = session

    def _get(self, session_id: str) -> EditorSession:
        if (session := self._sessions.get(session_id)) is None:
            raise acp.RequestError(
                RESOURCE_NOT_FOUND, f"the session {session_id[:200]!r} is not open: load it first"
            )
        return session

    # Options

    async def _read_options(self, conversation: str) -> Sequence[SessionConfigOptionSelect]:
        params = ModelListParams(conversation=conversation)
        return build_options(await self._client.call(methods.MODELS, params))

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        session = self._get(session_id)
        if config_id != MODEL_OPTION or not isinstance(value, str):
            raise invalid(f"there is no option {config_id[:100]!r} with such a value")
        params = ModelSetParams(conversation=session.conversation, model=value)
        chosen = await self._client.call(methods.SET_MODEL, params)
        return SetSessionConfigOptionResponse(config_options=list(build_options(chosen)))

    # Prompts

    async def prompt(
        self, session_id: str, prompt: Sequence[PromptBlock], **meta: Any
    ) -> PromptResponse:
        key = meta.get(KEY_FIELD)
        reason = await self._get(session_id).prompt(prompt, key=None if key is None else str(key))
        return PromptResponse(stop_reason=reason)

    async def cancel(self, session_id: str, **_: Any) -> None:
        await self._get(session_id).cancel()


def _check_folder(cwd: str) -> None:
    if not Path(cwd).is_absolute():
        raise invalid(f"cwd is {cwd[:200]!r}: it has to be an absolute path")


def _explain_servers(servers: Sequence[Any]) -> list[str]:
    """Say that the MCP servers of an editor are not used."""
    if not servers:
        return []
    names = ", ".join(str(server.name)[:100] for server in servers)
    remark = (
        f"The MCP servers that the editor offers are not used: {names}. Those of Clew are in "
        "[mcp] of its config.toml."
    )
    return [remark]


def _describe(conversation: ConversationShape, cwd: str | None, folders: Workspaces) -> SessionInfo:
    """Return a conversation as a session; it can be opened from every folder."""
    return SessionInfo(
        session_id=conversation.id,
        cwd=cwd or str(folders.find(conversation.scope)),
        title=conversation.title,
        updated_at=conversation.updated_at,
    )
