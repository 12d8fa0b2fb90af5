"""The operations of backups, for HTTP and JSON-RPC."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, Field

from clew.api.operation_scope import LOCAL_CLIENTS, OWNER
from clew.api.operations import HttpBinding, make_operation
from clew.api.schemas import RequestBody
from clew.errors import NotFound
from clew.features.maintenance import backups
from clew.features.maintenance.command_runner import run_command
from clew.wire.errors import ErrorCode
from clew.wire.methods import RpcMethod
from clew.wire.models import WireModel
from clew.wire.params import NoParams, Params

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.api.operation_call import OperationCall
    from clew.api.operations import AnyOperation

_PATH: Final = "/api/backups"


class BackupShape(WireModel):
    """A backup of the whole store."""

    name: str
    file: str
    #: The time of its snapshot.
    taken_at: str
    #: Bytes.
    size: int
    #: The command that brings it back, once the gateway is stopped.
    restore: str


class BackupList(WireModel):
    items: list[BackupShape]
    #: The folder in which they are.
    folder: str


class BackupPagesShape(WireModel):
    """Pages of an SQLite file."""

    all: int
    written: int


class CreatedBackupShape(WireModel):
    """The same as ``clew backup --json`` prints."""

    file: str
    taken_at: str
    size: int
    #: SQLite only.
    pages: BackupPagesShape | None
    #: Rows of each table.
    counts: dict[str, int]
    #: The older backups that are kept, newest first.
    older: list[str]
    #: Faults that a repair would mend.
    repairable: list[str]


class _BackupFields(BaseModel):
    #: The name of its file.
    name: str = Field(default=backups.DEFAULT_NAME, min_length=1, max_length=100)
    #: How many of this name are kept.
    keep: int = Field(default=2, ge=1, le=1000)


class CreateBackupParams(_BackupFields, Params):
    """The name of a new backup, and how many of this name are kept."""


class CreateBackupRequest(_BackupFields, RequestBody):
    """The name of a new backup, and how many of this name are kept."""


class VerifiedBackupShape(WireModel):
    """The same as ``clew backup --verify --json`` prints."""

    file: str
    #: The time of its snapshot; null for a plain copy of a store.
    taken_at: str | None
    size: int
    #: Rows of each table.
    counts: dict[str, int]
    #: Faults that a repair would mend once it is restored.
    repairable: list[str]


class _NamedBackup(BaseModel):
    name: str = Field(min_length=1, max_length=100)


class VerifyBackupParams(_NamedBackup, Params):
    """The name of a backup in the folder."""


class VerifyBackupRequest(_NamedBackup, RequestBody):
    """The name of a backup in the folder."""


async def _list_backups(call: OperationCall, given: NoParams) -> BackupList:
    home = call.context.settings.home
    found = await asyncio.to_thread(backups.list_backups, home)
    return BackupList.model_validate({"items": found, "folder": str(home / backups.FOLDER)})


async def _create_backup(call: OperationCall, given: CreateBackupParams) -> CreatedBackupShape:
    settings = call.context.settings
    file = await asyncio.to_thread(backups.find_file, settings.home, given.name)
    made: Any = await run_command(settings, "backup", str(file), "--keep", str(given.keep))
    return CreatedBackupShape.model_validate(made)


async def _verify_backup(call: OperationCall, given: VerifyBackupParams) -> VerifiedBackupShape:
    settings = call.context.settings
    known = await asyncio.to_thread(backups.list_backups, settings.home)
    file = next((one["file"] for one in known if one["name"] == given.name), None)
    if file is None:
        raise NotFound("backup", given.name)
    found: Any = await run_command(settings, "backup", file, "--verify")
    return VerifiedBackupShape.model_validate(found)


OPERATIONS: Final[Mapping[str, AnyOperation]] = {
    "backup.list": make_operation(
        RpcMethod(
            name="backup.list",
            params=NoParams,
            result=BackupList,
            summary="The backups in `CLEW_HOME/backups`, newest first.",
        ),
        _list_backups,
        LOCAL_CLIENTS,
        HttpBinding(
            method="GET",
            path=_PATH,
            summary="The backups in the folder for them",
            answer="The backups, newest first",
        ),
        is_ordered=False,
    ),
    "backup.create": make_operation(
        RpcMethod(
            name="backup.create",
            params=CreateBackupParams,
            result=CreatedBackupShape,
            summary="Copy the whole store, and verify the copy, as `clew backup` does.",
            errors=(ErrorCode.INVALID_VALUE, ErrorCode.CONFLICT),
        ),
        _create_backup,
        OWNER,
        HttpBinding(
            method="POST",
            path=_PATH,
            summary="Copy the whole store, and verify the copy",
            answer="The backup",
            body=CreateBackupRequest,
        ),
        is_ordered=False,
    ),
    "backup.verify": make_operation(
        RpcMethod(
            name="backup.verify",
            params=VerifyBackupParams,
            result=VerifiedBackupShape,
            summary="Read a whole backup, and check that it can be restored.",
            errors=(ErrorCode.NOT_FOUND, ErrorCode.INVALID_VALUE, ErrorCode.CONFLICT),
        ),
        _verify_backup,
        OWNER,
        HttpBinding(
            method="POST",
            path=f"{_PATH}/verify",
            summary="Read a whole backup, and check that it can be restored",
            answer="What is in it",
            body=VerifyBackupRequest,
        ),
        is_ordered=False,
    ),
}
