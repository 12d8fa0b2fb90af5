"""Definitions of the operations, for the server, clients and the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel

from clew.record import Record
from clew.wire import models, params, results
from clew.wire.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

P = TypeVar("P", bound=params.Params)
R = TypeVar("R", bound=BaseModel)


class RpcMethod(Record, Generic[P, R]):
    """A method: its name, parameters and result."""

    name: str
    params: type[P]
    result: type[R]
    summary: str
    #: Errors besides those that every method can have.
    errors: tuple[ErrorCode, ...] = ()


OPEN = RpcMethod(
    name="conversation.open",
    params=params.OpenParams,
    result=results.Opened,
    summary="Attach to a conversation: until it is closed or the connection ends, this client "
    "counts "
    "as attached.",
    errors=(ErrorCode.INVALID_VALUE, ErrorCode.NOT_FOUND, ErrorCode.TITLE_TAKEN),
)
NEW = RpcMethod(
    name="conversation.new",
    params=params.NewParams,
    result=results.Opened,
    summary="Move a name to a new conversation, and attach to it. The previous one is kept; "
    "its turn "
    "is stopped and its session ends.",
    errors=(ErrorCode.INVALID_VALUE, ErrorCode.NOT_FOUND, ErrorCode.TITLE_TAKEN),
)
RESUME = RpcMethod(
    name="conversation.resume",
    params=params.ResumeParams,
    result=results.Opened,
    summary="Move a name to another conversation, and attach to it.",
    errors=(ErrorCode.INVALID_VALUE, ErrorCode.NOT_FOUND),
)
CLOSE = RpcMethod(
    name="conversation.close",
    params=params.Named,
    result=results.Closed,
    summary="Leave a conversation. Its session ends (`tui_close`) if no other client is attached "
    "and no channel leads there; the next message reopens it.",
    errors=(ErrorCode.NOT_FOUND,),
)
END = RpcMethod(
    name="conversation.end",
    params=params.Named,
    result=models.ConversationShape,
    summary="End the session of a conversation, whoever is attached; the next message opens it "
    "again.",
    errors=(ErrorCode.NOT_FOUND, ErrorCode.CONFLICT),
)
LIST = RpcMethod(
    name="conversation.list",
    params=params.ListParams,
    result=models.ConversationList,
    summary="Conversations, most recently used first.",
    errors=(ErrorCode.INVALID_VALUE,),
)
STATUS = RpcMethod(
    name="conversation.status",
    params=params.Named,
    result=results.Status,
    summary="A conversation with its sessions, its state and its token usage.",
    errors=(ErrorCode.NOT_FOUND,),
)
CALL = RpcMethod(
    name="conversation.call",
    params=params.CallParams,
    result=results.CallShape,
    summary="The effect, the times and the reason of a tool call.",
    errors=(ErrorCode.NOT_FOUND,),
)
EXPORT = RpcMethod(
    name="conversation.export",
    params=params.ExportParams,
    result=results.ExportShape,
    summary="A conversation as a file: a page without scripts, Markdown, or lines that can be "
    "imported. Secrets of the settings are left out.",
    errors=(ErrorCode.NOT_FOUND,),
)
SCOPES = RpcMethod(
    name="conversation.scopes",
    params=params.NoParams,
    result=models.ScopeList,
    summary="The people and chats that have conversations, last used first; at most 200.",
)
LINEAGE = RpcMethod(
    name="conversation.lineage",
    params=params.Named,
    result=models.LineageShape,
    summary="Where a conversation was branched from, its sessions with the summaries of their "
    "compactions, and its branches.",
    errors=(ErrorCode.NOT_FOUND,),
)
ENTRIES = RpcMethod(
    name="conversation.entries",
    params=params.EntriesParams,
    result=models.EntryList,
    summary="A part of the log, in order. `next` is the seq after which to continue or, with "
    "`before`, before which to continue.",
    errors=(ErrorCode.NOT_FOUND,),
)
SEARCH = RpcMethod(
    name="conversation.search",
    params=params.SearchParams,
    result=models.HitList,
    summary="Messages with these words, newest first.",
    errors=(ErrorCode.INVALID_VALUE,),
)
RENAME = RpcMethod(
    name="conversation.rename",
    params=params.RenameParams,
    result=models.ConversationShape,
    summary="Name a conversation. For a NAME that is new the title is kept and given after the "
    "first turn; is it taken by then, it is dropped.",
    errors=(ErrorCode.INVALID_VALUE, ErrorCode.NOT_FOUND, ErrorCode.TITLE_TAKEN),
)
BRANCH = RpcMethod(
    name="conversation.branch",
    params=params.BranchParams,
    result=models.ConversationShape,
    summary="Open a conversation that begins with the context of another.",
    errors=(ErrorCode.INVALID_VALUE, ErrorCode.NOT_FOUND, ErrorCode.TITLE_TAKEN),
)
REWIND = RpcMethod(
    name="conversation.rewind",
    params=params.RewindParams,
    result=results.WentBack,
    summary="Rewind to right after an entry. The call waits for a running turn to end and is "
    "answered when it is done.",
    errors=(ErrorCode.INVALID_VALUE, ErrorCode.NOT_FOUND, ErrorCode.CONFLICT),
)
UNDO = RpcMethod(
    name="conversation.undo",
    params=params.UndoParams,
    result=results.Undone,
    summary="Take the person's last message, or the last ones, and what followed out of the "
    "context.",
    errors=(ErrorCode.NOT_FOUND, ErrorCode.CONFLICT),
)
RETRY = RpcMethod(
    name="conversation.retry",
    params=params.Named,
    result=results.Retried,
    summary="Undo the last exchange and send its message again.",
    errors=(ErrorCode.NOT_FOUND, ErrorCode.CONFLICT),
)
DELETE = RpcMethod(
    name="conversation.delete",
    params=params.Named,
    result=results.DeletedShape,
    summary="Delete a conversation: nobody can read or write it. Until `undo_until` "
    "`conversation.undelete` restores it.",
    errors=(ErrorCode.NOT_FOUND,),
)
UNDELETE = RpcMethod(
    name="conversation.undelete",
    params=params.UndeleteParams,
    result=models.ConversationShape,
    summary="Restore a deleted conversation, with its names that are still free. Its open inputs "
    "stay cancelled.",
    errors=(ErrorCode.NOT_FOUND,),
)
COMPACT = RpcMethod(
    name="session.compact",
    params=params.CompactParams,
    result=results.Compaction,
    summary="Summarise older messages; with `dry_run` only report what would be done, with `undo` "
    "undo the last compaction.",
    errors=(ErrorCode.NOT_FOUND, ErrorCode.CONFLICT),
)
SUBMIT = RpcMethod(
    name="prompt.submit",
    params=params.SubmitParams,
    result=results.Submitted,
    summary="Submit a message: it is stored once this is answered. The answer arrives as events.",
    errors=(ErrorCode.INVALID_VALUE, ErrorCode.NOT_FOUND, ErrorCode.REJECTED, ErrorCode.KEY_REUSED),
)
RESULT = RpcMethod(
    name="prompt.result",
    params=params.ResultParams,
    result=results.InputResult,
    summary="The outcome of a message: the call waits until there is one, whichever process works "
    "on it. Asked again, also later, it answers the same.",
    errors=(ErrorCode.NOT_FOUND,),
)
WAIT = RpcMethod(
    name="prompt.wait",
    params=params.WaitParams,
    result=results.MessageAnswer,
    summary="Wait until a message is answered, or only a person can make it go on; at most "
    "`seconds`. Asking again is safe.",
    errors=(ErrorCode.NOT_FOUND,),
)
INTERRUPT = RpcMethod(
    name="turn.interrupt",
    params=params.Named,
    result=results.Interrupted,
    summary="Stop the running turn; its text so far is kept.",
    errors=(ErrorCode.NOT_FOUND,),
)
APPROVALS = RpcMethod(
    name="approval.list",
    params=params.Named,
    result=results.Approvals,
    summary="The tool calls that wait for approval.",
    errors=(ErrorCode.NOT_FOUND,),
)
RESPOND = RpcMethod(
    name="approval.respond",
    params=params.RespondParams,
    result=models.ApprovalShape,
    summary="Allow or refuse a tool call; the first answer counts.",
    errors=(ErrorCode.NOT_FOUND, ErrorCode.CONFLICT),
)
GRANTS = RpcMethod(
    name="grant.list",
    params=params.NoParams,
    result=results.Grants,
    summary="What people have allowed for longer than one call.",
)
REVOKE = RpcMethod(
    name="grant.revoke",
    params=params.RevokeParams,
    result=models.GrantShape,
    summary="Take a grant back: such calls ask again.",
    errors=(ErrorCode.NOT_FOUND,),
)
QUEUE = RpcMethod(
    name="queue.list",
    params=params.Named,
    result=results.Queue,
    summary="The inputs that wait, in order.",
    errors=(ErrorCode.NOT_FOUND,),
)
CANCEL = RpcMethod(
    name="queue.cancel",
    params=params.CancelParams,
    result=results.Cancelled,
    summary="Cancel a waiting input.",
    errors=(ErrorCode.NOT_FOUND,),
)
EDIT = RpcMethod(
    name="queue.edit",
    params=params.EditParams,
    result=results.Edited,
    summary="Change the text of a waiting message.",
    errors=(ErrorCode.NOT_FOUND, ErrorCode.INVALID_VALUE),
)
SUBSCRIBE = RpcMethod(
    name="events.subscribe",
    params=params.SubscribeParams,
    result=results.Subscribed,
    summary="Subscribe to the events of a conversation. Subscribing again restarts at `after`.",
    errors=(ErrorCode.NOT_FOUND, ErrorCode.INVALID_VALUE),
)
UNSUBSCRIBE = RpcMethod(
    name="events.unsubscribe",
    params=params.Named,
    result=results.Unsubscribed,
    summary="Unsubscribe from the events of a conversation.",
    errors=(ErrorCode.NOT_FOUND,),
)
COMMANDS = RpcMethod(
    name="commands.list",
    params=params.NoParams,
    result=results.Commands,
    summary="The chat commands.",
)
RUN = RpcMethod(
    name="commands.run",
    params=params.RunParams,
    result=results.CommandReply,
    summary="Run a chat command; the reply says what could not be done.",
    errors=(ErrorCode.NOT_FOUND, ErrorCode.INVALID_VALUE),
)
COMPLETE = RpcMethod(
    name="complete",
    params=params.CompleteParams,
    result=results.Completions,
    summary="Completions at the cursor.",
)
CONFIG_GET = RpcMethod(
    name="config.get",
    params=params.ConfigGetParams,
    result=results.SettingList,
    summary="Settings, and where each comes from.",
    errors=(ErrorCode.NOT_FOUND,),
)
CONFIG_SET = RpcMethod(
    name="config.set",
    params=params.ConfigSetParams,
    result=results.SettingWritten,
    summary="Write a setting into config.toml, if it can be used and `api.token` is set.",
    errors=(ErrorCode.SETTINGS, ErrorCode.INVALID_VALUE),
)
MODELS = RpcMethod(
    name="model.list",
    params=params.ModelListParams,
    result=results.Models,
    summary="The models of the settings, and the one in use.",
    errors=(ErrorCode.NOT_FOUND,),
)
SET_MODEL = RpcMethod(
    name="model.set",
    params=params.ModelSetParams,
    result=results.Models,
    summary="Choose the model of a conversation.",
    errors=(ErrorCode.NOT_FOUND, ErrorCode.SETTINGS, ErrorCode.INVALID_VALUE),
)
DESCRIBE = RpcMethod(
    name="agent.describe",
    params=params.NoParams,
    result=results.AgentShape,
    summary="Who answers here: model, tools, version, home.",
)
DISCOVER = RpcMethod(
    name="rpc.discover",
    params=params.NoParams,
    result=results.Description,
    summary="This description, as an OpenRPC document.",
)

AnyRpcMethod = RpcMethod[Any, Any]
#: All definitions, in the order of the reference.
METHODS: Sequence[AnyRpcMethod] = [  # pyright: ignore[reportUnknownVariableType]
    each for each in tuple(globals().values()) if isinstance(each, RpcMethod)
]
