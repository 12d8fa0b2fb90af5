"""Operations: one definition from which HTTP, JSON-RPC and their descriptions derive."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel

from clew.api.endpoints import Endpoint
from clew.api.operation_scope import LOCAL_CLIENTS, OperationScope
from clew.api.schemas import EmptyInput, QueryParams, RequestBody
from clew.errors import UsageError
from clew.record import Record
from clew.wire.methods import METHODS
from clew.wire.params import Params

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from starlette.responses import Response

    from clew.wire.methods import AnyRpcMethod, RpcMethod

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=BaseModel)


class HttpBinding(Record):
    """
    An HTTP form of an operation.

    The input's fields come from the path, as text, and from the query and the body, which
    validate them; in the path ``{id}`` is the field ``conversation``, or the ``subject``.
    """

    method: str
    path: str
    summary: str
    #: Description of the successful response.
    answer: str
    query: type[QueryParams | EmptyInput] = EmptyInput
    body: type[RequestBody] = EmptyInput
    #: Request headers with their descriptions.
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    #: The field that the path names as ``{id}``.
    subject: str = "conversation"
    #: Fields of the input that have the same value in every request.
    fixed: Mapping[str, object] = field(default_factory=dict[str, object])
    #: The scope, where it is narrower than the operation's.
    scope: OperationScope | None = None
    status: int = 200
    #: The result in OpenAPI, where its name differs, or where it has only some of the fields.
    result: type[BaseModel] | None = None
    #: Runs the handler and returns the response, where that is not the result.
    respond: Callable[[Any, Callable[[], Awaitable[Any]]], Awaitable[Response]] | None = None


class Operation(Record, Generic[P, R]):
    """A definition with its handler and its transports."""

    #: Name, input, output, errors and summary: all that a client needs.
    definition: RpcMethod[P, R]
    #: Gets a ``clew.api.operation_call.OperationCall``, and the input.
    handler: Callable[[Any, P], Awaitable[R]]
    #: Waits for earlier requests of the same client; reading, stopping and approving do not.
    is_ordered: bool
    #: Callers and inputs that are allowed, checked before the handler runs.
    scope: OperationScope = LOCAL_CLIENTS
    http: HttpBinding | Sequence[HttpBinding] = ()

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def bindings(self) -> Sequence[HttpBinding]:
        return (self.http,) if isinstance(self.http, HttpBinding) else self.http


AnyOperation = Operation[Any, Any]


def make_operation(
    definition: RpcMethod[P, R],
    handler: Callable[[Any, P], Awaitable[R]],
    scope: OperationScope,
    *http: HttpBinding,
    is_ordered: bool = True,
) -> AnyOperation:
    """Return an operation that waits for earlier requests of the same client, or does not."""
    return Operation(
        definition=definition, handler=handler, scope=scope, is_ordered=is_ordered, http=http
    )


class Operations:
    """All operations of a server; they do not change."""

    def __init__(self, entries: Sequence[AnyOperation | Endpoint]) -> None:
        #: In the order of the HTTP interface; an endpoint is only there.
        self.entries = entries
        self._operations = {
            entry.name: entry for entry in entries if not isinstance(entry, Endpoint)
        }

    def get(self, name: str) -> AnyOperation | None:
        return self._operations.get(name)

    def __iter__(self) -> Iterator[AnyOperation]:
        return iter(self._operations.values())

    @property
    def names(self) -> Sequence[str]:
        return list(self._operations)

    @property
    def methods(self) -> Sequence[AnyRpcMethod]:
        """Return the definitions in the order of the reference, added ones last."""
        added = [each.definition for each in self if each.definition not in METHODS]
        return [*(method for method in METHODS if method.name in self._operations), *added]


class OperationRegistry:
    """Collects operations until the server is built."""

    def __init__(self, entries: Iterable[AnyOperation | Endpoint] = ()) -> None:
        self._entries = list[AnyOperation | Endpoint]()
        self._names = set[str]()
        self._forms = set[tuple[str, str]]()
        for entry in entries:
            self.add(entry)

    def add(self, entry: AnyOperation | Endpoint) -> None:
        """
        Add an operation, or an endpoint that has no method.

        :raises UsageError: if its name or one of its HTTP forms is taken
        """
        names = set[str]() if isinstance(entry, Endpoint) else {entry.name}
        forms = _http_forms(entry)
        taken = [repr(name) for name in names & self._names]
        taken += [f"{method} {path}" for method, path in forms if (method, path) in self._forms]
        if taken:
            raise UsageError(f"there is an operation {taken[0]} already")
        self._entries.append(entry)
        self._names |= names
        self._forms.update(forms)

    def build(self) -> Operations:
        return Operations(tuple(self._entries))


def _http_forms(entry: AnyOperation | Endpoint) -> list[tuple[str, str]]:
    """Return method and path of each."""
    bindings = (entry,) if isinstance(entry, Endpoint) else entry.bindings
    return [(each.method, each.path) for each in bindings]
