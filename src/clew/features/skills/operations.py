"""The operations of skills, for HTTP and JSON-RPC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, Field

from clew.api.operation_scope import CLIENTS, LOCAL_CLIENTS
from clew.api.operations import HttpBinding, make_operation
from clew.api.schemas import QueryParams, RequestBody
from clew.core.scope import LOCAL, Scope
from clew.errors import NotFound
from clew.features.skills import front, trust
from clew.features.skills.library import list_sources, load_library
from clew.features.skills.trust import SHORT
from clew.wire.errors import ErrorCode
from clew.wire.methods import RpcMethod
from clew.wire.models import WireModel
from clew.wire.params import Params

if TYPE_CHECKING:
    from clew.api.operation_call import OperationCall
    from clew.api.operations import AnyOperation
    from clew.features.skills.library import SkillLibrary

_PATH: Final = "/api/skills"
_SKILL_PATH: Final = f"{_PATH}/{{name}}"
_TRUST_PATH: Final = f"{_SKILL_PATH}/trust"


class SkillShape(WireModel):
    """A skill in a folder."""

    name: str
    description: str
    #: The folder of skills: ``home``, ``plugin NAME`` or ``workspace PATH``.
    source: str
    folder: str
    #: ``trusted``, ``new``, or ``changed`` since it was trusted.
    state: str
    #: Over names, modes and bytes of all files.
    digest: str
    #: Null if it lists none.
    allowed_tools: list[str] | None


class SkillProblemShape(WireModel):
    """A folder that cannot be used as a skill."""

    folder: str
    source: str
    reason: str


class SkillList(WireModel):
    items: list[SkillShape]
    problems: list[SkillProblemShape]


class SkillReviewShape(SkillShape):
    """A skill as a person looks at it before it is trusted."""

    files: list[str]
    scripts: list[str]
    #: Named in its files.
    hosts: list[str]
    #: Lines to read, each with its place.
    notable: list[str]
    remarks: list[str]
    #: Files that are new, changed or gone since it was trusted.
    changes: list[str]
    #: Of ``SKILL.md`` since it was trusted, as a unified diff.
    difference: str
    decided_by: str | None


class ListSkillsParams(Params):
    """The scope whose skills are listed; a client of one scope sees only its own."""

    scope: str | None = Field(default=None, min_length=1, max_length=300)


class ListSkillsQuery(QueryParams):
    scope: str | None = Field(default=None, min_length=1, max_length=300, strict=False)


class SkillParams(ListSkillsParams):
    """A skill of a scope."""

    name: str = Field(min_length=1, max_length=100)


class _TrustFields(BaseModel):
    """Digest that a person has looked at."""

    #: The digest, or its beginning.
    digest: str = Field(min_length=SHORT, max_length=64)


class TrustSkillParams(_TrustFields, SkillParams):
    """A skill, and the digest of what was looked at."""


class TrustSkillRequest(_TrustFields, RequestBody):
    """The digest of what was looked at."""

    #: Whose skills; the caller's own if it is missing.
    scope: str | None = Field(default=None, min_length=1, max_length=300)


async def _load(call: OperationCall, given: str | None) -> SkillLibrary:
    """Return the skills of a scope that the caller sees."""
    viewer = call.context.viewer
    if given is not None and given != viewer and viewer != LOCAL:
        raise NotFound("scope", given)
    services = call.engine.feature_context
    scope = viewer if given is None else Scope(given)
    return await load_library(services.store, list_sources(services.settings, scope))


async def _list_skills(call: OperationCall, given: ListSkillsParams) -> SkillList:
    return SkillList.model_validate(front.describe_library(await _load(call, given.scope)))


async def _review(call: OperationCall, given: SkillParams) -> SkillReviewShape:
    library = await _load(call, given.scope)
    found = await front.review(call.engine.feature_context, library, given.name)
    return SkillReviewShape.model_validate(found.as_dict())


async def _trust(call: OperationCall, given: TrustSkillParams) -> SkillReviewShape:
    skill = (await _load(call, given.scope)).get(given.name)
    store = call.engine.feature_context.store
    await store.write(trust.trust, skill, digest=given.digest, by="local")
    return await _review(call, given)


async def _untrust(call: OperationCall, given: SkillParams) -> SkillReviewShape:
    await front.untrust(call.engine.feature_context, given.name, by="local")
    return await _review(call, given)


_WRONG: Final = (ErrorCode.INVALID_VALUE, ErrorCode.NOT_FOUND)

OPERATIONS: Final[dict[str, AnyOperation]] = {
    "skill.list": make_operation(
        RpcMethod(
            name="skill.list",
            params=ListSkillsParams,
            result=SkillList,
            summary="The skills of a scope, trusted or not, and folders that cannot be used.",
            errors=(ErrorCode.NOT_FOUND,),
        ),
        _list_skills,
        CLIENTS,
        HttpBinding(
            method="GET",
            path=_PATH,
            summary="The skills",
            answer="The skills, by name, and the folders that cannot be used",
            query=ListSkillsQuery,
        ),
        is_ordered=False,
    ),
    "skill.get": make_operation(
        RpcMethod(
            name="skill.get",
            params=SkillParams,
            result=SkillReviewShape,
            summary="A skill with everything that a person looks at before it is trusted.",
            errors=_WRONG,
        ),
        _review,
        CLIENTS,
        HttpBinding(
            method="GET",
            path=_SKILL_PATH,
            summary="A skill",
            answer="The skill, with its files, hosts and notable lines",
            query=ListSkillsQuery,
            subject="name",
        ),
        is_ordered=False,
    ),
    "skill.trust": make_operation(
        RpcMethod(
            name="skill.trust",
            params=TrustSkillParams,
            result=SkillReviewShape,
            summary="Trust a skill, if its digest is still the one that was looked at.",
            errors=_WRONG,
        ),
        _trust,
        LOCAL_CLIENTS,
        HttpBinding(
            method="POST",
            path=_TRUST_PATH,
            summary="Trust a skill",
            answer="The skill",
            body=TrustSkillRequest,
            subject="name",
        ),
    ),
    "skill.untrust": make_operation(
        RpcMethod(
            name="skill.untrust",
            params=SkillParams,
            result=SkillReviewShape,
            summary="Take the trust in a skill back.",
            errors=_WRONG,
        ),
        _untrust,
        LOCAL_CLIENTS,
        HttpBinding(
            method="DELETE",
            path=_TRUST_PATH,
            summary="Take the trust in a skill back",
            answer="The skill",
            query=ListSkillsQuery,
            subject="name",
        ),
    ),
}
