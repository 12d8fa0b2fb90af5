"""The methods: every call there is, in one place; server, clients and reference read this table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from clew.wire import params, records, results
from clew.wire.errors import Code

P = TypeVar("P", bound=params.Params)
R = TypeVar("R", bound=BaseModel)


@dataclass(frozen=True, kw_only=True, slots=True)
class Method(Generic[P, R]):
    """A call: its name, what it takes, what it gives back."""

    name: str
    params: type[P]
    result: type[R]
    summary: str
    #: What may go wrong beside what may go wrong everywhere.
    errors: tuple[Code, ...] = ()


LIST = Method(
    name="conversation.list",
    params=params.ListParams,
    result=records.ConversationList,
    summary="Conversations, the last used first.",
    errors=(Code.INVALID_VALUE,),
)
OPEN = Method(
    name="conversation.open",
    params=params.OpenParams,
    result=results.Opened,
    summary="Attach to a conversation: until it is closed, or the connection ends, this client "
    "looks at it.",
    errors=(Code.INVALID_VALUE, Code.NOT_FOUND, Code.TITLE_TAKEN),
)
STATUS = Method(
    name="conversation.status",
    params=params.Named,
    result=results.Status,
    summary="A conversation with its sessions, what it is doing, what it has used.",
    errors=(Code.NOT_FOUND,),
)
ENTRIES = Method(
    name="conversation.entries",
    params=params.EntriesParams,
    result=records.EntryList,
    summary="A part of the log, in order. `next` is the seq to go on after, or, where `before` "
    "was given, to go on before.",
    errors=(Code.NOT_FOUND,),
)
NEW = Method(
    name="conversation.new",
    params=params.NewParams,
    result=results.Opened,
    summary="Have a name lead to a new conversation, and attach to it. The one that it leaves is "
    "kept; its turn is stopped, its session ends.",
    errors=(Code.INVALID_VALUE, Code.NOT_FOUND, Code.TITLE_TAKEN),
)
RESUME = Method(
    name="conversation.resume",
    params=params.ResumeParams,
    result=results.Opened,
    summary="Have a name lead to another conversation, and attach to that.",
    errors=(Code.INVALID_VALUE, Code.NOT_FOUND),
)
RENAME = Method(
    name="conversation.rename",
    params=params.RenameParams,
    result=records.ConversationShape,
    summary="Name a conversation. For a NAME that is new the title is kept and given after the "
    "first turn; is it taken by then, it is dropped.",
    errors=(Code.INVALID_VALUE, Code.NOT_FOUND, Code.TITLE_TAKEN),
)
BRANCH = Method(
    name="conversation.branch",
    params=params.BranchParams,
    result=records.ConversationShape,
    summary="Open a conversation that begins with the context of another.",
    errors=(Code.INVALID_VALUE, Code.NOT_FOUND, Code.TITLE_TAKEN),
)
REWIND = Method(
    name="conversation.rewind",
    params=params.RewindParams,
    result=results.WentBack,
    summary="Go back to right after an entry. It is done in the conversation's line, after a "
    "running turn, and answered then.",
    errors=(Code.INVALID_VALUE, Code.NOT_FOUND, Code.CONFLICT),
)
UNDO = Method(
    name="conversation.undo",
    params=params.UndoParams,
    result=results.Undone,
    summary="Take the person's last message, or the last ones, and what followed out of the "
    "context.",
    errors=(Code.NOT_FOUND, Code.CONFLICT),
)
RETRY = Method(
    name="conversation.retry",
    params=params.Named,
    result=results.Retried,
    summary="Undo the last exchange and hand its message in again.",
    errors=(Code.NOT_FOUND, Code.CONFLICT),
)
CLOSE = Method(
    name="conversation.close",
    params=params.Named,
    result=results.Closed,
    summary="Leave a conversation. Its session ends (`tui_close`) if no other client is attached "
    "and no channel leads there; the next message reopens it.",
    errors=(Code.NOT_FOUND,),
)
SEARCH = Method(
    name="conversation.search",
    params=params.SearchParams,
    result=records.HitList,
    summary="Messages with these words, newest first.",
    errors=(Code.INVALID_VALUE,),
)
DELETE = Method(
    name="conversation.delete",
    params=params.Named,
    result=results.DeletedShape,
    summary="Delete a conversation: nobody can read or write it. Until `undo_until` "
    "`conversation.undelete` brings it back.",
    errors=(Code.NOT_FOUND,),
)
UNDELETE = Method(
    name="conversation.undelete",
    params=params.UndeleteParams,
    result=records.ConversationShape,
    summary="Bring a deleted conversation back, with the names that are still free. What was open "
    "in it stays cancelled.",
    errors=(Code.NOT_FOUND,),
)
COMPACT = Method(
    name="session.compact",
    params=params.CompactParams,
    result=results.Compaction,
    summary="Summarise what is old; with `dry_run` only say what would be done, with `undo` take "
    "the last compaction back.",
    errors=(Code.NOT_FOUND, Code.CONFLICT),
)
SUBMIT = Method(
    name="prompt.submit",
    params=params.SubmitParams,
    result=results.Submitted,
    summary="Hand a message in: once this is answered it is stored. Its answer comes as events.",
    errors=(Code.INVALID_VALUE, Code.NOT_FOUND, Code.REJECTED, Code.KEY_REUSED),
)
INTERRUPT = Method(
    name="turn.interrupt",
    params=params.Named,
    result=results.Interrupted,
    summary="Stop the running turn; what it has said is kept.",
    errors=(Code.NOT_FOUND,),
)
APPROVALS = Method(
    name="approval.list",
    params=params.Named,
    result=results.Approvals,
    summary="The tool calls that wait for a person's word.",
    errors=(Code.NOT_FOUND,),
)
RESPOND = Method(
    name="approval.respond",
    params=params.RespondParams,
    result=records.ApprovalShape,
    summary="Allow or refuse a tool call; the first word counts.",
    errors=(Code.NOT_FOUND, Code.CONFLICT),
)
QUEUE = Method(
    name="queue.list",
    params=params.Named,
    result=results.Queue,
    summary="The inputs that wait, in order.",
    errors=(Code.NOT_FOUND,),
)
CANCEL = Method(
    name="queue.cancel",
    params=params.CancelParams,
    result=results.Cancelled,
    summary="Take a waiting input back.",
    errors=(Code.NOT_FOUND,),
)
EDIT = Method(
    name="queue.edit",
    params=params.EditParams,
    result=results.Edited,
    summary="Change the text of a waiting message.",
    errors=(Code.NOT_FOUND, Code.INVALID_VALUE),
)
COMMANDS = Method(
    name="commands.list",
    params=params.NoParams,
    result=results.Commands,
    summary="The chat commands.",
)
RUN = Method(
    name="commands.run",
    params=params.RunParams,
    result=results.CommandReply,
    summary="Carry out a chat command; what cannot be done is said in the reply.",
    errors=(Code.NOT_FOUND, Code.INVALID_VALUE),
)
COMPLETE = Method(
    name="complete",
    params=params.CompleteParams,
    result=results.Completions,
    summary="What may stand where the cursor is.",
)
CONFIG_GET = Method(
    name="config.get",
    params=params.ConfigGetParams,
    result=results.SettingList,
    summary="Settings, and where each comes from.",
    errors=(Code.NOT_FOUND,),
)
CONFIG_SET = Method(
    name="config.set",
    params=params.ConfigSetParams,
    result=results.SettingWritten,
    summary="Write a setting into config.toml, if it can be used and `api.token` is set.",
    errors=(Code.SETTINGS, Code.INVALID_VALUE),
)
MODELS = Method(
    name="model.list",
    params=params.ModelListParams,
    result=results.Models,
    summary="The models of the settings, and the one that is asked.",
    errors=(Code.NOT_FOUND,),
)
SET_MODEL = Method(
    name="model.set",
    params=params.ModelSetParams,
    result=results.Models,
    summary="Choose the model of a conversation.",
    errors=(Code.NOT_FOUND, Code.SETTINGS),
)
SUBSCRIBE = Method(
    name="events.subscribe",
    params=params.SubscribeParams,
    result=results.Subscribed,
    summary="Hear what happens in a conversation. Subscribing again begins again at `after`.",
    errors=(Code.NOT_FOUND,),
)
UNSUBSCRIBE = Method(
    name="events.unsubscribe",
    params=params.Named,
    result=results.Unsubscribed,
    summary="Hear no more of a conversation.",
    errors=(Code.NOT_FOUND,),
)
DESCRIBE = Method(
    name="agent.describe",
    params=params.NoParams,
    result=results.AgentShape,
    summary="Who answers here: model, tools, version, home.",
)
DISCOVER = Method(
    name="rpc.discover",
    params=params.NoParams,
    result=results.Description,
    summary="This description, as an OpenRPC document.",
)

AnyMethod = Method[Any, Any]

#: In the order of the reference.
METHODS: tuple[AnyMethod, ...] = (
    OPEN,
    NEW,
    RESUME,
    CLOSE,
    LIST,
    STATUS,
    ENTRIES,
    SEARCH,
    RENAME,
    BRANCH,
    REWIND,
    UNDO,
    RETRY,
    DELETE,
    UNDELETE,
    COMPACT,
    SUBMIT,
    INTERRUPT,
    APPROVALS,
    RESPOND,
    QUEUE,
    CANCEL,
    EDIT,
    SUBSCRIBE,
    UNSUBSCRIBE,
    COMMANDS,
    RUN,
    COMPLETE,
    CONFIG_GET,
    CONFIG_SET,
    MODELS,
    SET_MODEL,
    DESCRIBE,
    DISCOVER,
)
BY_NAME: dict[str, AnyMethod] = {method.name: method for method in METHODS}
