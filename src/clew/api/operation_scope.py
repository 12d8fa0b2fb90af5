"""Scopes of operations: who may call one, and what its input may name."""

from __future__ import annotations

import enum
from dataclasses import field
from typing import TYPE_CHECKING

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping


class CallerKind(enum.Enum):
    """The callers that an operation has."""

    #: Everybody, without a token: only over HTTP.
    PUBLIC = "public"
    #: Every client. What it may not see is refused by ``names``, or missing in the result.
    CLIENT = "client"
    #: Clients that see every conversation; for the others there is no such operation.
    LOCAL = "local"
    #: Clients that are authenticated as the owner of the settings.
    OWNER = "owner"


class NamedKind(enum.Enum):
    """Kinds of things that inputs name; the caller must see one, or it is not found."""

    CONVERSATION = "conversation"
    #: A conversation, or a route of the caller's scope that has none yet.
    TARGET = "target"
    #: A NAME or route of the caller's scope, which is to lead to a conversation.
    ROUTE = "route"
    DELETED = "deleted conversation"
    #: A pending input, and an approval, of a conversation.
    INPUT = "input"
    APPROVAL = "approval"
    #: An accepted input with its answer, under its id as a response.
    RESPONSE = "response"
    #: A grant of a scope.
    GRANT = "grant"


class OperationScope(Record):
    """The scope of an operation, checked before its handler runs."""

    callers: CallerKind = CallerKind.CLIENT
    #: Fields of the input, checked in this order; those that are absent or null name nothing.
    names: Mapping[str, NamedKind] = field(default_factory=dict[str, NamedKind])


PUBLIC = OperationScope(callers=CallerKind.PUBLIC)
CLIENTS = OperationScope()
LOCAL_CLIENTS = OperationScope(callers=CallerKind.LOCAL)
OWNER = OperationScope(callers=CallerKind.OWNER)
ONE_CONVERSATION = OperationScope(names={"conversation": NamedKind.CONVERSATION})
