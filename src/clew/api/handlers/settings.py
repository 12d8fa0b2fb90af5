"""Operations on commands, completion, settings and models."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from clew.commands.completion import complete_input as completed
from clew.commands.runner import CommandRunner
from clew.config.introspection import effective_values
from clew.config.settings import OFFLINE
from clew.core.scope import LOCAL
from clew.distribution import VERSION
from clew.plugin.setting_change import change_setting
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.openrpc import build_openrpc
from clew.wire.results import (
    AgentShape,
    CommandReply,
    Commands,
    CommandShape,
    Completion,
    Completions,
    Description,
    Models,
    SettingList,
    SettingShape,
    SettingWritten,
)

if TYPE_CHECKING:
    from clew.api.operation_call import OperationCall
    from clew.wire import params


async def list_commands(call: OperationCall, given: params.NoParams) -> Commands:
    items = [
        CommandShape(
            name=one.name,
            aliases=list(one.aliases),
            arguments=one.arguments,
            help=one.help,
            control=one.control,
        )
        for one in call.context.commands.commands
        if call.context.viewer == LOCAL or not one.operator
    ]
    return Commands(items=items)


async def run_command(call: OperationCall, given: params.RunParams) -> CommandReply:
    runner = CommandRunner(call.engine, call.context.commands, from_program=True)
    reply = await runner.run_command(
        given.text,
        target=call.target,
        viewer=call.context.viewer,
        on_filed=call.release_order,
    )
    return CommandReply(
        text=reply.text,
        conversation=reply.conversation,
        inbox_id=None if reply.accepted is None else reply.accepted.inbox_id,
    )


async def complete_text(call: OperationCall, given: params.CompleteParams) -> Completions:
    end = len(given.text) if given.cursor is None else min(given.cursor, len(given.text))
    folder = Path.cwd() if given.folder is None else Path(given.folder)
    found = await asyncio.to_thread(completed, given.text[:end], folder, call.context.commands)
    items = [
        Completion.model_validate({"text": one.text, "kind": one.kind, "help": one.help})
        for one in found.items
    ]
    return Completions(start=found.start, end=end, items=items)


async def get_config(call: OperationCall, given: params.ConfigGetParams) -> SettingList:
    settings = call.context.settings
    items = [
        SettingShape(key=one.name, value=one.value, origin=one.origin.place)
        for one in effective_values(settings)
        if given.key in (None, one.name) or one.name.startswith(f"{given.key}.")
    ]
    if not items:
        raise CallFailed.from_code(
            ErrorCode.NOT_FOUND,
            f"there is no setting {given.key!r}: config.get without key lists them",
        )
    return SettingList(items=items, file=str(settings.home / "config.toml"))


async def set_config(call: OperationCall, given: params.ConfigSetParams) -> SettingWritten:
    done = await asyncio.to_thread(change_setting, call.context.settings, given.key, given.value)
    return SettingWritten(
        key=given.key, file=str(done.file), restart=not done.applied, note=done.describe()
    )


async def list_models(call: OperationCall, given: params.ModelListParams) -> Models:
    choice = call.engine.model_overrides
    if given.conversation is None:
        return Models(items=list(choice.offered), current=choice.offered[0])
    current = await choice.get_model_name(call.conversation)
    return Models(items=list(dict.fromkeys([*choice.offered, current])), current=current)


async def set_model(call: OperationCall, given: params.ModelSetParams) -> Models:
    choice = call.engine.model_overrides
    if call.context.viewer != LOCAL and given.model not in choice.offered:
        raise CallFailed.from_code(
            ErrorCode.INVALID_VALUE,
            f"{given.model!r} is not available here: choose from {', '.join(choice.offered)}",
        )
    await choice.choose_model(call.conversation, given.model)
    return Models(items=list(dict.fromkeys([*choice.offered, given.model])), current=given.model)


async def describe_agent(call: OperationCall, given: params.NoParams) -> AgentShape:
    settings = call.context.settings
    return AgentShape(
        version=VERSION,
        model=settings.model.name,
        offline=settings.model.name == OFFLINE,
        tools=list(call.engine.tools),
        home=str(settings.home),
    )


async def discover_methods(call: OperationCall, given: params.NoParams) -> Description:
    return Description.model_validate(build_openrpc(VERSION, call.context.operations.methods))
