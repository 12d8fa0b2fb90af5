"""Calls over JSON-RPC."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.api.operation_call import OperationCall
from clew.engine.request_service import make_request_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.api.rpc.context import ConnectedClient
    from clew.core.events import InputCompleted
    from clew.core.inbox import AcceptResult
    from clew.engine.request_service import IdempotencyKey
    from clew.wire.params import SubmitParams


@dataclass(frozen=True, kw_only=True, slots=True)
class RpcCall(OperationCall):
    """One JSON-RPC request while it is processed."""

    client: ConnectedClient
    #: Callbacks to run after the response was sent.
    after_response: list[Callable[[], None]] = field(default_factory=list)

    def make_key(self, given: SubmitParams) -> IdempotencyKey | None:
        if given.key is None:
            return None
        # Without the session: a repeated request may name a newer one of the same conversation.
        meant = given.model_dump_json(exclude={"key", "session_id"})
        return make_request_key(
            caller=self.context.caller, path="prompt.submit", key=given.key, request=meant.encode()
        )

    async def wait_for_input(self, filed: AcceptResult) -> InputCompleted:
        return await self.engine.wait_for_input(filed)
