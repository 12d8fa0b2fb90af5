"""Operations of deliveries that did not arrive: list them, send them again, give them up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, Field

from clew.api.operation_scope import LOCAL_CLIENTS
from clew.api.operations import HttpBinding, make_operation
from clew.api.schemas import Cursor, QueryParams
from clew.core.ids import DeliveryId
from clew.engine.deliveries import DROPPED_BY_OPERATOR, FAILED_STATES, OPEN_STATES
from clew.features.admin.records import describe_change, describe_delivery
from clew.wire.errors import ErrorCode
from clew.wire.methods import RpcMethod
from clew.wire.models import WireModel
from clew.wire.params import Params

if TYPE_CHECKING:
    from clew.api.operation_call import OperationCall
    from clew.api.operations import AnyOperation

_PATH: Final = "/api/deliveries"
_STATES: Final = {
    "failed": FAILED_STATES,
    "open": OPEN_STATES,
    "all": (*FAILED_STATES, *OPEN_STATES),
}
_State = Literal["failed", "open", "all"]


class ChangedDelivery(WireModel):
    """A delivery that was changed."""

    id: str
    state: str
    route: str


class DeliveryShape(ChangedDelivery):
    """A message to a channel that did not arrive there, or not yet."""

    #: NAME of the channel in the settings.
    channel: str
    conversation: str
    kind: str
    text: str
    attempts: int
    error: str | None
    created_at: str
    changed_at: str
    #: It is on its way; the others were given up.
    open: bool


class DeliveryList(WireModel):
    items: list[DeliveryShape]
    next: str | None


class _ListFields(BaseModel):
    #: ``failed`` are those that were given up, ``open`` those on their way.
    state: _State = "failed"
    #: NAME of a channel in the settings.
    channel: str | None = Field(default=None, min_length=1, max_length=200)
    cursor: Cursor = Field(default=None, max_length=200)
    limit: int = Field(default=50, ge=1, le=1000)


class ListDeliveriesParams(_ListFields, Params):
    """The deliveries that are listed, and where a page begins."""


class ListDeliveriesQuery(_ListFields, QueryParams):
    limit: int = Field(default=50, ge=1, le=1000, strict=False)


class DeliveryParams(Params):
    """A delivery, by its id."""

    delivery: str = Field(min_length=1, max_length=200)


async def _list_deliveries(call: OperationCall, given: ListDeliveriesParams) -> DeliveryList:
    found = await call.engine.deliveries.list_deliveries(
        _STATES[given.state],
        limit=given.limit + 1,
        before=None if given.cursor is None else DeliveryId(given.cursor),
        channel=given.channel,
    )
    items = [describe_delivery(one, at) for one, at in found[: given.limit]]
    following = items[-1]["id"] if len(found) > given.limit else None
    return DeliveryList.model_validate({"items": items, "next": following})


async def _retry_delivery(call: OperationCall, given: DeliveryParams) -> ChangedDelivery:
    changed = await call.engine.deliveries.retry_delivery(DeliveryId(given.delivery))
    return ChangedDelivery.model_validate(describe_change(changed))


async def _give_up_delivery(call: OperationCall, given: DeliveryParams) -> ChangedDelivery:
    changed = await call.engine.deliveries.drop_delivery(
        DeliveryId(given.delivery), why=DROPPED_BY_OPERATOR
    )
    return ChangedDelivery.model_validate(describe_change(changed))


OPERATIONS: Final[tuple[AnyOperation, ...]] = (
    make_operation(
        RpcMethod(
            name="delivery.list",
            params=ListDeliveriesParams,
            result=DeliveryList,
            summary="The messages that did not arrive on their channel, the newest first.",
            errors=(ErrorCode.NOT_FOUND,),
        ),
        _list_deliveries,
        LOCAL_CLIENTS,
        HttpBinding(
            method="GET",
            path=_PATH,
            summary="The messages that did not arrive",
            answer="A page of them, the newest first",
            query=ListDeliveriesQuery,
        ),
        is_ordered=False,
    ),
    make_operation(
        RpcMethod(
            name="delivery.retry",
            params=DeliveryParams,
            result=ChangedDelivery,
            summary="Send once more what was given up, without the parts that arrived.",
            errors=(ErrorCode.NOT_FOUND, ErrorCode.CONFLICT),
        ),
        _retry_delivery,
        LOCAL_CLIENTS,
        HttpBinding(
            method="POST",
            path=f"{_PATH}/{{delivery}}/retry",
            summary="Send once more what was given up",
            answer="The delivery, which is on its way",
            subject="delivery",
        ),
    ),
    make_operation(
        RpcMethod(
            name="delivery.give_up",
            params=DeliveryParams,
            result=ChangedDelivery,
            summary="Give up what is on its way.",
            errors=(ErrorCode.NOT_FOUND, ErrorCode.CONFLICT),
        ),
        _give_up_delivery,
        LOCAL_CLIENTS,
        HttpBinding(
            method="POST",
            path=f"{_PATH}/{{delivery}}/give-up",
            summary="Give up what is on its way",
            answer="The delivery, which is given up",
            subject="delivery",
        ),
    ),
)
