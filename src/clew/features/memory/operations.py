"""The operations of memory, for HTTP and JSON-RPC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, Field

from clew.api.operation_scope import CLIENTS
from clew.api.operations import HttpBinding, make_operation
from clew.api.schemas import QueryParams, RequestBody
from clew.core.scope import LOCAL, Scope
from clew.errors import NotFound
from clew.features.memory import facts, forgetting, front, link_operations, links, writing
from clew.features.memory.facts import FactKind, FactWriter
from clew.features.memory.searching import RECALL
from clew.wire.errors import ErrorCode
from clew.wire.methods import RpcMethod
from clew.wire.models import WireModel
from clew.wire.params import Params

if TYPE_CHECKING:
    from clew.api.operation_call import OperationCall
    from clew.api.operations import AnyOperation
    from clew.features.memory.facts import Fact
    from clew.features.memory.forgetting import Forgotten
    from clew.store.contract import Tx

_PATH: Final = "/api/memory"
_FACT_PATH: Final = f"{_PATH}/{{fact}}"

Kind = Literal["profile", "preference", "fact", "plan"]


class FactShape(WireModel):
    """A fact that is remembered in a scope."""

    id: str
    scope: str
    #: As people name it in its scope.
    number: int
    kind: str
    #: Null once it is forgotten.
    text: str | None
    state: str
    pinned: bool
    version: int
    written_by: str
    #: Where it comes from, in words.
    source: str
    conversation: str | None
    seq: int | None
    #: The fact in whose place it is.
    replaces: str | None
    uses: int
    created_at: str


class FactList(WireModel):
    items: list[FactShape]


class ForgottenShape(WireModel):
    """Result of forgetting a fact."""

    #: In words.
    remark: str
    #: Conversations whose logs still have what was said.
    sources: list[str]


class ListFactsParams(Params):
    """The scope whose facts are listed; a client of one scope sees only its own."""

    scope: str | None = Field(default=None, min_length=1, max_length=300)


class ListFactsQuery(QueryParams):
    scope: str | None = Field(default=None, min_length=1, max_length=300, strict=False)


class SearchFactsParams(ListFactsParams):
    """The facts of a scope that a query is about."""

    query: str = Field(min_length=1, max_length=1000)
    limit: int = Field(default=8, ge=1, le=100)


class SearchFactsQuery(ListFactsQuery):
    query: str = Field(min_length=1, max_length=1000, strict=False)
    limit: int = Field(default=8, ge=1, le=100, strict=False)


class FactParams(Params):
    """A fact, by its id, or its number in the caller's scope."""

    fact: str = Field(min_length=1, max_length=100)


class _AddFields(BaseModel):
    """The fields of a new fact."""

    text: str = Field(min_length=1, max_length=writing.MAX_TEXT)
    kind: Kind = "fact"
    pinned: bool = False
    #: The caller's own if it is missing; ``shared`` for every conversation.
    scope: str | None = Field(default=None, min_length=1, max_length=300)


class AddFactParams(_AddFields, Params):
    """A fact to remember."""


class AddFactRequest(_AddFields, RequestBody):
    """A fact to remember."""


class _EditFields(BaseModel):
    """The changed fields of a fact; what is missing stays."""

    text: str | None = Field(default=None, min_length=1, max_length=writing.MAX_TEXT)
    pinned: bool | None = None


class EditFactParams(_EditFields, FactParams):
    """The changes of a fact."""


class EditFactRequest(_EditFields, RequestBody):
    """The changes of a fact."""


def find_scope(viewer: Scope, given: str | None) -> Scope:
    """
    Return the scope that a caller names.

    :raises NotFound: if the caller sees only another one
    """
    if given is None or given == viewer:
        return viewer
    if viewer != LOCAL:
        raise NotFound("scope", given)
    return Scope(given)


def describe_all(t: Tx, scope: Scope) -> list[dict[str, Any]]:
    """Return the facts of a scope, as programs get them."""
    return front.describe_facts(t, facts.list_active(t, links.find_main(t, scope)))


def search_facts(t: Tx, query: str, scope: Scope, *, limit: int) -> list[dict[str, Any]]:
    """Return the facts of a scope that a query is about, as programs get them."""
    return front.describe_facts(
        t, RECALL.find_facts(t, query, links.find_main(t, scope), limit=limit)
    )


def describe_named(t: Tx, name: str, *, viewer: Scope) -> dict[str, Any]:
    """Return a fact, as programs get it."""
    return front.describe_fact(t, facts.get_named(t, name, viewer=links.find_main(t, viewer)))


def add_fact(t: Tx, name: str, given: _AddFields, scope: Scope) -> dict[str, Any]:
    """Remember a fact; return it as programs get it."""
    made = writing.remember(
        t,
        writing.NewFact(
            id=name,
            scope=links.find_main(t, scope),
            text=given.text,
            kind=FactKind(given.kind),
            pinned=given.pinned,
            written_by=FactWriter.PERSON,
        ),
    )
    return front.describe_fact(t, made)


def edit_fact(
    t: Tx, name: str, text: str | None, pinned: bool | None, *, viewer: Scope
) -> dict[str, Any]:
    """Change a fact; return it as programs get it."""
    fact: Fact = facts.get_named(t, name, viewer=links.find_main(t, viewer))
    if text is not None:
        fact = writing.edit(t, fact, text, written_by=FactWriter.PERSON)
    if pinned is not None:
        fact = writing.pin(t, fact, on=pinned, written_by=FactWriter.PERSON)
    return front.describe_fact(t, fact)


def forget_fact(t: Tx, name: str, *, viewer: Scope) -> Forgotten:
    """Erase a fact, also from what open sessions are sent."""
    fact = facts.get_named(t, name, viewer=links.find_main(t, viewer))
    return forgetting.forget(t, fact, written_by=FactWriter.PERSON)


async def _list_facts(call: OperationCall, given: ListFactsParams) -> FactList:
    scope = find_scope(call.context.viewer, given.scope)
    found = await call.engine.feature_context.store.read(describe_all, scope)
    return FactList.model_validate({"items": found})


async def _search_facts(call: OperationCall, given: SearchFactsParams) -> FactList:
    scope = find_scope(call.context.viewer, given.scope)
    found = await call.engine.feature_context.store.read(
        search_facts, given.query, scope, limit=given.limit
    )
    return FactList.model_validate({"items": found})


async def _get_fact(call: OperationCall, given: FactParams) -> FactShape:
    found = await call.engine.feature_context.store.read(
        describe_named, given.fact, viewer=call.context.viewer
    )
    return FactShape.model_validate(found)


async def _add_fact(call: OperationCall, given: AddFactParams) -> FactShape:
    services = call.engine.feature_context
    made = await services.store.write(
        add_fact,
        writing.make_fact_id(services.ids.new_operation_id()),
        given,
        find_scope(call.context.viewer, given.scope),
    )
    return FactShape.model_validate(made)


async def _edit_fact(call: OperationCall, given: EditFactParams) -> FactShape:
    changed = await call.engine.feature_context.store.write(
        edit_fact, given.fact, given.text, given.pinned, viewer=call.context.viewer
    )
    return FactShape.model_validate(changed)


async def _forget_fact(call: OperationCall, given: FactParams) -> ForgottenShape:
    services = call.engine.feature_context
    done = await services.store.write(forget_fact, given.fact, viewer=call.context.viewer)
    remark = forgetting.tell_forgotten(services, done)
    return ForgottenShape(remark=remark, sources=list(done.sources))


_WRONG: Final = (ErrorCode.INVALID_VALUE, ErrorCode.NOT_FOUND)

OPERATIONS: Final[dict[str, AnyOperation]] = {
    **link_operations.OPERATIONS,
    "memory.list": make_operation(
        RpcMethod(
            name="memory.list",
            params=ListFactsParams,
            result=FactList,
            summary="The facts that are remembered in a scope.",
            errors=(ErrorCode.NOT_FOUND,),
        ),
        _list_facts,
        CLIENTS,
        HttpBinding(
            method="GET",
            path=_PATH,
            summary="The facts that are remembered",
            answer="The facts, by their numbers",
            query=ListFactsQuery,
        ),
        is_ordered=False,
    ),
    "memory.search": make_operation(
        RpcMethod(
            name="memory.search",
            params=SearchFactsParams,
            result=FactList,
            summary="The facts of a scope that a query is about, best first.",
            errors=_WRONG,
        ),
        _search_facts,
        CLIENTS,
        HttpBinding(
            method="GET",
            path=f"{_PATH}/search",
            summary="Search the facts that are remembered",
            answer="The facts, best match first",
            query=SearchFactsQuery,
        ),
        is_ordered=False,
    ),
    "memory.add": make_operation(
        RpcMethod(
            name="memory.add",
            params=AddFactParams,
            result=FactShape,
            summary="Remember a sentence; one that is known already is returned.",
            errors=_WRONG,
        ),
        _add_fact,
        CLIENTS,
        HttpBinding(
            method="POST",
            path=_PATH,
            summary="Remember a sentence",
            answer="The fact",
            body=AddFactRequest,
        ),
    ),
    "memory.get": make_operation(
        RpcMethod(
            name="memory.get",
            params=FactParams,
            result=FactShape,
            summary="A fact, and where it comes from.",
            errors=_WRONG,
        ),
        _get_fact,
        CLIENTS,
        HttpBinding(
            method="GET", path=_FACT_PATH, summary="A fact", answer="The fact", subject="fact"
        ),
        is_ordered=False,
    ),
    "memory.edit": make_operation(
        RpcMethod(
            name="memory.edit",
            params=EditFactParams,
            result=FactShape,
            summary="Change the text of a fact, or whether every session is told it.",
            errors=_WRONG,
        ),
        _edit_fact,
        CLIENTS,
        HttpBinding(
            method="PATCH",
            path=_FACT_PATH,
            summary="Change a fact",
            answer="The fact",
            body=EditFactRequest,
            subject="fact",
        ),
    ),
    "memory.forget": make_operation(
        RpcMethod(
            name="memory.forget",
            params=FactParams,
            result=ForgottenShape,
            summary="Erase a fact, and say where the log still has it.",
            errors=_WRONG,
        ),
        _forget_fact,
        CLIENTS,
        HttpBinding(
            method="DELETE",
            path=_FACT_PATH,
            summary="Forget a fact",
            answer="Where the log still has it",
            subject="fact",
        ),
    ),
}
