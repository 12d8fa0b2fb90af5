"""Operations of people: who has access on channels, letting them in and shutting them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, Field

from clew.api.operation_scope import LOCAL_CLIENTS
from clew.api.operations import HttpBinding, make_operation
from clew.api.schemas import RequestBody
from clew.core.access import AccessStatus
from clew.features.admin.accounts import find_accounts
from clew.features.admin.records import describe_person
from clew.wire.errors import ErrorCode
from clew.wire.methods import RpcMethod
from clew.wire.models import WireModel
from clew.wire.params import NoParams, Params

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from clew.api.operation_call import OperationCall
    from clew.api.operations import AnyOperation
    from clew.config.settings import ChannelSettings
    from clew.core.access import Person

_PATH: Final = "/api/people"
_OUT: Final = (AccessStatus.REMOVED, AccessStatus.BLOCKED)


class PersonShape(WireModel):
    """A person who asked for access on a channel, is let in or is shut out."""

    #: The platform, its account of the agent, and the platform's id of the person.
    channel: str
    account: str
    user: str
    #: As they call themselves.
    name: str
    #: ``asked``, ``paired``, ``removed`` or ``blocked``.
    standing: str
    changed_at: str
    #: When the code that they were shown expires.
    code_until: str | None
    approved_by: str | None


class AllowedPerson(WireModel):
    """A person whom the settings let in."""

    #: NAME of the channel in the settings, and the platform's id of the person, or ``*``.
    channel: str
    user: str
    #: May let others in, too.
    operator: bool
    #: Was shut out all the same.
    shut_out: bool


class PersonList(WireModel):
    items: list[PersonShape]
    allowed: list[AllowedPerson]


class ShutOut(WireModel):
    """A person who was shut out."""

    user: str
    standing: str


class _CodeFields(BaseModel):
    #: As the agent showed it to the person, in capitals or not.
    code: str = Field(min_length=1, max_length=100)


class LetInParams(_CodeFields, Params):
    """The code of a person."""


class LetInRequest(_CodeFields, RequestBody):
    """The code of a person."""


class _ShutOutFields(BaseModel):
    #: The platform's id of the person.
    user: str = Field(min_length=1, max_length=200)
    #: The channel: with an account, as the list has both; else its NAME in the settings. Without a
    #: channel it is every one on which the person is known.
    channel: str | None = Field(default=None, min_length=1, max_length=200)
    account: str | None = Field(default=None, min_length=1, max_length=200)
    #: Answer them nothing any more; else they may ask for access again.
    block: bool = False


class ShutOutParams(_ShutOutFields, Params):
    """A person, and for how long they are out."""


class ShutOutRequest(_ShutOutFields, RequestBody):
    """A person, and for how long they are out."""


def list_allowed(
    channels: Mapping[str, ChannelSettings], people: Sequence[Person]
) -> list[AllowedPerson]:
    """Return the people whom the settings let in, channel by channel."""
    out = {(one.account.channel, one.user) for one in people if one.standing in _OUT}
    return [
        AllowedPerson(
            channel=name,
            user=user,
            operator=user in channel.operators,
            shut_out=(channel.kind or name, user) in out,
        )
        for name, channel in channels.items()
        for user in _unique((*channel.operators, *channel.allow))
    ]


def _unique(users: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(users))


async def _list_people(call: OperationCall, given: NoParams) -> PersonList:
    people = await call.engine.pairing.list_people()
    return PersonList(
        items=[PersonShape.model_validate(describe_person(one)) for one in people],
        allowed=list_allowed(call.context.settings.channels, people),
    )


async def _let_in(call: OperationCall, given: LetInParams) -> PersonShape:
    person = await call.engine.pairing.approve_code(given.code, by=call.context.viewer)
    return PersonShape.model_validate(describe_person(person))


async def _shut_out(call: OperationCall, given: ShutOutParams) -> ShutOut:
    pairing = call.engine.pairing
    accounts = find_accounts(
        call.context.settings,
        await pairing.list_people(),
        given.user,
        channel=given.channel,
        account=given.account,
    )
    to = AccessStatus.BLOCKED if given.block else AccessStatus.REMOVED
    for one in accounts:
        await pairing.revoke_access(one, given.user, to=to, by=call.context.viewer)
    return ShutOut(user=given.user, standing=to.value)


OPERATIONS: Final[tuple[AnyOperation, ...]] = (
    make_operation(
        RpcMethod(
            name="person.list",
            params=NoParams,
            result=PersonList,
            summary="Who asked for access on channels, is let in or is shut out.",
        ),
        _list_people,
        LOCAL_CLIENTS,
        HttpBinding(
            method="GET",
            path=_PATH,
            summary="Who has access on channels",
            answer="Who asked, is in or is out, and whom the settings let in",
        ),
        is_ordered=False,
    ),
    make_operation(
        RpcMethod(
            name="person.let_in",
            params=LetInParams,
            result=PersonShape,
            summary="Let the person in who was shown a code, and notify them.",
            errors=(ErrorCode.INVALID_VALUE,),
        ),
        _let_in,
        LOCAL_CLIENTS,
        HttpBinding(
            method="POST",
            path=f"{_PATH}/let-in",
            summary="Let a person in by their code",
            answer="The person, who has access now",
            body=LetInRequest,
        ),
    ),
    make_operation(
        RpcMethod(
            name="person.shut_out",
            params=ShutOutParams,
            result=ShutOut,
            summary="Shut a person out at once, and end their open work.",
            errors=(ErrorCode.INVALID_VALUE,),
        ),
        _shut_out,
        LOCAL_CLIENTS,
        HttpBinding(
            method="POST",
            path=f"{_PATH}/shut-out",
            summary="Shut a person out",
            answer="The person, who has no access any more",
            body=ShutOutRequest,
        ),
    ),
)
