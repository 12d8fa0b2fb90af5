"""Operations on grants: what people have allowed for longer than one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.ids import GrantId
from clew.wire import serializers
from clew.wire.models import GrantShape
from clew.wire.results import Grants

if TYPE_CHECKING:
    from clew.api.operation_call import OperationCall
    from clew.wire import params


async def list_grants(call: OperationCall, given: params.NoParams) -> Grants:
    found = await call.engine.grants.list_grants(viewer=call.context.viewer)
    return Grants(
        items=[GrantShape.model_validate(serializers.serialize_grant(one)) for one in found]
    )


async def revoke_grant(call: OperationCall, given: params.RevokeParams) -> GrantShape:
    revoked = await call.engine.grants.revoke_grant(
        GrantId(given.grant), viewer=call.context.viewer
    )
    return GrantShape.model_validate(serializers.serialize_grant(revoked))
