"""The operations of settings, for HTTP and JSON-RPC."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field

from clew.api.operation_scope import LOCAL_CLIENTS, OWNER
from clew.api.operations import HttpBinding, make_operation
from clew.api.schemas import RequestBody
from clew.errors import SettingsError, UsageError
from clew.features.maintenance.settings_view import list_settings
from clew.plugin.loading import get_features
from clew.plugin.setting_change import change_setting
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.methods import RpcMethod
from clew.wire.models import WireModel
from clew.wire.params import NoParams, Params

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.api.operation_call import OperationCall
    from clew.api.operations import AnyOperation

_PATH: Final = "/api/settings"


class SettingInfoShape(WireModel):
    """A setting: what it takes, its value, and where that comes from."""

    #: ``section.key``; with ``NAME`` in it if it is a ``template``.
    name: str
    section: str
    #: In words: ``duration``, ``whole number``, ``choice``; ``any`` if only a channel knows it.
    type: str
    #: Completes "must be …".
    expects: str
    choices: list[str] | None
    minimum: float | None
    maximum: float | None
    is_list: bool
    #: A secret's value is ``set`` or ``not set``.
    secret: bool
    value: Any
    #: The value at the next start.
    next: Any
    default: Any
    #: Describes a default that depends on the machine or on another setting.
    default_note: str | None
    #: ``default``, ``file``, ``environment`` or ``flag``.
    source: str
    #: The file and line, the variable, or the flag.
    place: str
    help: str
    #: The variable that sets it, too.
    environment: str | None
    #: A change counts once the gateway is started again.
    restart: bool
    #: The file has the setting.
    in_file: bool
    #: The file has another value, which counts at the next start.
    pending: bool
    #: It belongs to a table that the user names, such as a channel, and has no value.
    template: bool


class SettingInfoList(WireModel):
    items: list[SettingInfoShape]
    #: The file that is written.
    file: str


class SettingChangeShape(WireModel):
    """The file has the value."""

    name: str
    file: str
    #: It counts once the gateway is started again.
    restart: bool
    #: The running gateway uses it already.
    applied: bool
    #: In words.
    note: str


class SetSettingRequest(RequestBody):
    """The new value as in ``config.toml``; null removes the setting from the file."""

    value: Any


class SetSettingParams(Params):
    """A setting, and its new value as in ``config.toml``; null removes it from the file."""

    name: str = Field(min_length=1, max_length=300)
    value: Any


async def _list_settings(call: OperationCall, given: NoParams) -> SettingInfoList:
    settings = call.context.settings
    found = await asyncio.to_thread(list_settings, settings)
    return SettingInfoList.model_validate({"items": found, "file": str(settings.config_file)})


async def _set_setting(call: OperationCall, given: SetSettingParams) -> SettingChangeShape:
    settings = call.context.settings
    catalog = get_features(settings).catalog
    path = tuple(given.name.split("."))
    if catalog.find_setting(path) is None:
        raise CallFailed.from_code(
            ErrorCode.NOT_FOUND,
            f"there is no setting {given.name!r}: {catalog.suggest_setting(path)}",
            param="name",
        )
    try:
        done = await asyncio.to_thread(change_setting, settings, given.name, given.value)
    except (SettingsError, UsageError) as error:
        raise CallFailed.from_code(ErrorCode.INVALID_VALUE, str(error), param="value") from error
    return SettingChangeShape(
        name=done.name,
        file=str(done.file),
        restart=not done.applied,
        applied=done.applied,
        note=done.describe(),
    )


OPERATIONS: Final[Mapping[str, AnyOperation]] = {
    "setting.list": make_operation(
        RpcMethod(
            name="setting.list",
            params=NoParams,
            result=SettingInfoList,
            summary="Every setting with its type, value and origin; secrets are set or not set.",
        ),
        _list_settings,
        LOCAL_CLIENTS,
        HttpBinding(
            method="GET",
            path=_PATH,
            summary="Every setting, its value and where that comes from",
            answer="The settings; a secret is only set or not set",
        ),
        is_ordered=False,
    ),
    "setting.set": make_operation(
        RpcMethod(
            name="setting.set",
            params=SetSettingParams,
            result=SettingChangeShape,
            summary="Check a value, write it to `config.toml`, and apply it if that is possible.",
            errors=(ErrorCode.INVALID_VALUE, ErrorCode.NOT_FOUND),
        ),
        _set_setting,
        OWNER,
        HttpBinding(
            method="PUT",
            path=f"{_PATH}/{{name}}",
            summary="Write a setting",
            answer="From when on it counts",
            body=SetSettingRequest,
            subject="name",
        ),
    ),
}
