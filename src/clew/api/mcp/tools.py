"""The tools: for each its operation, the parameters of it that are arguments, and its texts."""

from __future__ import annotations

import enum
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from clew.api.mcp import shapes
from clew.record import Record
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.params import LARGEST_SEQ

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Entries of a conversation that are read at once, unless more are asked for.
PAGE_SIZE: Final = 50
#: Seconds that a message waits for its answer; most clients give up after 60.
DEFAULT_WAIT, MAX_WAIT = 50, 600


class McpAccess(enum.IntEnum):
    """Rights of a client; each kind includes those before it."""

    READ = 1  #: conversations, approvals and memory
    TALK = 2  #: send messages
    OPERATE = 3  #: answer approvals

    @classmethod
    def parse(cls, name: str) -> McpAccess:
        """
        Return the kind of that name.

        :raises CallFailed: if there is none
        """
        try:
            return cls[name.upper()]
        except KeyError:
            known = ", ".join(each.name.lower() for each in cls)
            raise CallFailed.from_code(
                ErrorCode.INVALID_PARAMS, f"there is no scope {name!r}: use {known}", param="scope"
            ) from None


class McpFrontTool(Record):
    """A tool that is an operation."""

    name: str
    #: The operation that it calls.
    method: str
    description: str
    access: McpAccess = McpAccess.READ
    #: Its arguments: the parameters of the operation, by the names that they have here.
    arguments: Mapping[str, str]
    #: Schemas of arguments that the operation does not have.
    more: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, "Mapping[str, Any]"])
    #: Completes the parameters.
    prepare: Callable[[dict[str, Any]], dict[str, Any]] = lambda given: given
    #: Makes of the result what a model reads.
    shape: Callable[[dict[str, Any]], dict[str, Any]] = lambda result: result
    #: Calling it again with the same arguments changes nothing more.
    is_idempotent: bool = True

    def make_schema(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the schema of its arguments."""
        known = {
            name: parameters[param] for name, param in self.arguments.items() if param in parameters
        }
        return {
            "type": "object",
            "properties": {
                **{name: _without_title(one["schema"]) for name, one in known.items()},
                **self.more,
            },
            "required": [name for name, one in known.items() if one["required"]],
            "additionalProperties": False,
        }

    def make_params(
        self, arguments: Mapping[str, Any], schema: Mapping[str, Any]
    ) -> dict[str, Any]:
        """
        Return the parameters of the operation.

        :raises CallFailed: if an argument is missing or unknown
        """
        for name in arguments:
            if name not in schema["properties"]:
                known = ", ".join(schema["properties"])
                message = f"{self.name} has no argument {name[:100]!r}: it has {known}"
                raise CallFailed.from_code(ErrorCode.INVALID_PARAMS, message, param=name[:100])
        for name in schema["required"]:
            if name not in arguments:
                message = f"the argument {name!r} is missing"
                raise CallFailed.from_code(ErrorCode.INVALID_PARAMS, message, param=name)
        return self.prepare({self.arguments.get(name, name): arguments[name] for name in arguments})


def _without_title(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != "title"}


def _read_newest(given: dict[str, Any]) -> dict[str, Any]:
    """Read the newest entries, unless a place is named."""
    place = {} if {"after", "before"} & given.keys() else {"before": LARGEST_SEQ}
    return {"limit": PAGE_SIZE, **place, **given}


SEND_MESSAGE: Final = McpFrontTool(
    name="send_message",
    method="prompt.submit",
    description="Send a message to the agent of a conversation and wait for its answer. The "
    "message is stored first, and answered even if this call is broken off. Give a new random "
    "`key` with each new message: sent again with the same key, it is stored once, and this waits "
    "on for the same answer.",
    access=McpAccess.TALK,
    arguments={"conversation": "session_id", "text": "text", "key": "key"},
    more={
        "wait": {
            "type": "integer",
            "minimum": 0,
            "maximum": MAX_WAIT,
            "default": DEFAULT_WAIT,
            "description": "Seconds to wait for the answer; 0 returns once the message is stored.",
        }
    },
    is_idempotent=False,
)
TOOLS: Final = (
    McpFrontTool(
        name="conversations_list",
        method="conversation.list",
        description="List conversations, the last used first. `next` is the cursor of the next "
        "page.",
        arguments={"query": "query", "cursor": "cursor", "limit": "limit"},
        shape=shapes.shape_conversations,
    ),
    McpFrontTool(
        name="conversations_read",
        method="conversation.entries",
        description="Read the entries of a conversation in order: the newest, or those after or "
        "before an entry. `next` is the entry to continue at.",
        arguments={
            "conversation": "conversation",
            "after": "after",
            "before": "before",
            "limit": "limit",
        },
        prepare=_read_newest,
        shape=shapes.shape_entries,
    ),
    McpFrontTool(
        name="conversations_search",
        method="conversation.search",
        description="Find messages with these words in all conversations, the newest first.",
        arguments={"query": "query", "cursor": "cursor", "limit": "limit"},
    ),
    SEND_MESSAGE,
    McpFrontTool(
        name="approvals_list",
        method="approval.list",
        description="List the tool calls of a conversation that wait for a person's approval.",
        arguments={"conversation": "conversation"},
    ),
    McpFrontTool(
        name="approvals_answer",
        method="approval.respond",
        description="Allow or refuse a tool call that waits for approval; the first answer counts. "
        "Only do what a person has told you about this call.",
        access=McpAccess.OPERATE,
        arguments={"approval": "approval", "approve": "approve", "note": "note"},
    ),
    McpFrontTool(
        name="memory_recall",
        method="memory.search",
        description="Find facts that are remembered about people and chats.",
        arguments={"query": "query", "scope": "scope", "limit": "limit"},
    ),
)
