"""The operations that check the store and the installation, for HTTP and JSON-RPC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import Field

from clew.api.operation_scope import LOCAL_CLIENTS, OWNER
from clew.api.operations import HttpBinding, make_operation
from clew.api.schemas import RequestBody
from clew.features.maintenance.command_runner import run_command
from clew.wire.errors import ErrorCode
from clew.wire.methods import RpcMethod
from clew.wire.models import WireModel
from clew.wire.params import NoParams, Params

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.api.operation_call import OperationCall
    from clew.api.operations import AnyOperation

_PATH: Final = "/api/checks"
_ERRORS: Final = (ErrorCode.INVALID_VALUE, ErrorCode.CONFLICT)


class StoreFindingShape(WireModel):
    """A violated rule of the store, and its possible repair."""

    check: str
    conversation: str | None
    seq: int | None
    detail: str
    #: What a repair does; null where none is certainly right.
    repair: str | None
    #: The decision that a person can make instead.
    decide: str | None
    repaired: bool


class StoreReportShape(WireModel):
    """The same as ``clew fsck --json`` prints."""

    clean: bool
    #: Rows by table, and the number of checks.
    checked: dict[str, int]
    findings: list[StoreFindingShape]
    #: Checks that damaged pages made impossible.
    unchecked: list[str]
    #: Tables of features that are not loaded, with the feature: they were not checked.
    left_alone: dict[str, str] = Field(default_factory=dict[str, str])


class DoctorFindingShape(WireModel):
    """One result of a check of the installation."""

    #: ``ok``, ``warn`` or ``fail``.
    level: str
    what: str
    detail: str
    #: What to do.
    fix: str | None


class DoctorReportShape(WireModel):
    """The same as ``clew doctor --json`` prints."""

    ok: bool
    findings: list[DoctorFindingShape]


class RunDoctorParams(Params):
    """The extent of a look at the installation."""

    #: Send no test request to the providers of models.
    offline: bool = False


class RunDoctorRequest(RequestBody):
    """The extent of a look at the installation."""

    #: Send no test request to the providers of models.
    offline: bool = False


async def _run_checks(call: OperationCall, given: NoParams) -> StoreReportShape:
    return StoreReportShape.model_validate(await run_command(call.context.settings, "fsck"))


async def _repair(call: OperationCall, given: NoParams) -> StoreReportShape:
    found = await run_command(call.context.settings, "fsck", "--repair")
    return StoreReportShape.model_validate(found)


async def _run_doctor(call: OperationCall, given: RunDoctorParams) -> DoctorReportShape:
    options = ["--offline"] if given.offline else []
    found = await run_command(call.context.settings, "doctor", *options)
    return DoctorReportShape.model_validate(found)


OPERATIONS: Final[Mapping[str, AnyOperation]] = {
    "check.run": make_operation(
        RpcMethod(
            name="check.run",
            params=NoParams,
            result=StoreReportShape,
            summary="Check everything that is stored, as `clew fsck` does; change nothing.",
            errors=_ERRORS,
        ),
        _run_checks,
        LOCAL_CLIENTS,
        HttpBinding(
            method="POST",
            path=_PATH,
            summary="Check everything that is stored; change nothing",
            answer="The findings, each with its possible repair",
        ),
        is_ordered=False,
    ),
    "check.repair": make_operation(
        RpcMethod(
            name="check.repair",
            params=NoParams,
            result=StoreReportShape,
            summary="Check all that is stored, and make the repairs that are certainly right.",
            errors=_ERRORS,
        ),
        _repair,
        OWNER,
        HttpBinding(
            method="POST",
            path=f"{_PATH}/repair",
            summary="Make the repairs that are certainly right",
            answer="What was repaired, and what is left",
        ),
        is_ordered=False,
    ),
    "doctor.run": make_operation(
        RpcMethod(
            name="doctor.run",
            params=RunDoctorParams,
            result=DoctorReportShape,
            summary="Look at settings, files, store and model, as `clew doctor` does.",
            errors=_ERRORS,
        ),
        _run_doctor,
        LOCAL_CLIENTS,
        HttpBinding(
            method="POST",
            path="/api/doctor",
            summary="Look at settings, files, store and model",
            answer="The findings, each with what to do",
            body=RunDoctorRequest,
        ),
        is_ordered=False,
    ),
}
