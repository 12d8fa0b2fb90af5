"""Operations: one definition from which HTTP, JSON-RPC and their descriptions derive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel

from clew.api.schemas import EmptyInput, QueryParams, RequestBody
from clew.errors import UsageError
from clew.wire.params import Params

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from clew.api.endpoints import AnyEndpoint
    from clew.wire.methods import AnyRpcMethod, RpcMethod

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=BaseModel)
CallT_contra = TypeVar("CallT_contra", contravariant=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpBinding:
    """
    The HTTP form of an operation.

    The input's fields come from the path, as text, and from the query and the body, which
    validate them; in the path ``{id}`` is the field ``conversation``.
    """

    method: str
    path: str
    summary: str
    #: Description of the successful response.
    answer: str
    query: type[QueryParams | EmptyInput] = EmptyInput
    body: type[RequestBody] = EmptyInput
    status: int = 200
    #: The name of the result in OpenAPI, where it differs.
    result: type[BaseModel] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation(Generic[CallT_contra, P, R]):
    """A definition with its handler and its transports."""

    #: Name, input, output, errors and summary: all that a client needs.
    definition: RpcMethod[P, R]
    handler: Callable[[CallT_contra, P], Awaitable[R]]
    #: Waits for earlier requests of the same client; reading, stopping and approving do not.
    is_ordered: bool
    http: HttpBinding | None = None

    @property
    def name(self) -> str:
        return self.definition.name


AnyOperation = Operation[Any, Any, Any]


class Operations:
    """All operations of a server, by name; it does not change."""

    def __init__(
        self, operations: Mapping[str, AnyOperation], endpoints: Sequence[AnyEndpoint]
    ) -> None:
        self._operations, self.endpoints = operations, endpoints

    def get(self, name: str) -> AnyOperation | None:
        return self._operations.get(name)

    def __getitem__(self, name: str) -> AnyOperation:
        return self._operations[name]

    def __iter__(self) -> Iterator[AnyOperation]:
        return iter(self._operations.values())

    @property
    def names(self) -> Sequence[str]:
        return list(self._operations)

    @property
    def methods(self) -> Sequence[AnyRpcMethod]:
        """Return the definitions, in the order of the reference."""
        return [operation.definition for operation in self]


class OperationRegistry:
    """Collects operations until the server is built."""

    def __init__(self, operations: Sequence[AnyOperation] = ()) -> None:
        self._operations: dict[str, AnyOperation] = {}
        self._endpoints: list[AnyEndpoint] = []
        for operation in operations:
            self.add(operation)

    def add(self, operation: AnyOperation) -> None:
        """
        Add an operation.

        :raises UsageError: if its name is taken
        """
        if operation.name in self._operations:
            raise UsageError(f"there is an operation {operation.name!r} already")
        self._operations[operation.name] = operation

    def add_endpoint(self, endpoint: AnyEndpoint) -> None:
        """Add an endpoint that answers anything but one JSON result, such as a stream."""
        self._endpoints.append(endpoint)

    def build(self) -> Operations:
        return Operations(dict(self._operations), tuple(self._endpoints))
