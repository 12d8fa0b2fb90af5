"""Files: tools that read, list, search, write and edit files of the workspace."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from clew.features.files import tools
from clew.features.files.settings import FilesSettings
from clew.plugin.declarations import Command

if TYPE_CHECKING:
    from clew.core.scope import Scope
    from clew.plugin import CommandCall, FeatureContext, Registry, WatchedText


def register(registry: Registry) -> None:
    """Register the feature."""
    registry.add_migrations(
        f"{__name__}.migrations", of_conversation={"files_change": "conversation"}
    )
    settings = registry.add_settings(FilesSettings)

    async def prune(services: FeatureContext) -> None:
        from clew.features.files import pruning  # noqa: PLC0415  (declared by every command, needed by few)

        await pruning.prune_versions(services, settings.get())

    registry.add_periodic(prune, every=timedelta(hours=1), name="file versions")
    registry.add_command(
        Command(
            name="undo files",
            help="undo what the last turn changed in files",
            run=undo_files,
        )
    )
    registry.add_watch_source(
        "file", read_watched_file, facts=lambda path: tools.make_read_facts({"path": path})
    )
    for reader, facts in (
        (tools.read_file, tools.make_read_facts),
        (tools.list_files, tools.make_list_facts),
        (tools.search_files, tools.make_search_facts),
    ):
        registry.add_tool(reader, effect="pure", facts=facts)
    registry.add_tool(tools.send_file, effect="idempotent", facts=tools.make_send_facts)
    for writer in (tools.write_file, tools.edit_file):
        registry.add_tool(writer, effect="idempotent", facts=tools.make_write_facts, in_order=True)


async def read_watched_file(context: FeatureContext, scope: Scope, path: str) -> WatchedText:
    """Return the text of a file in the workspace of a scope."""
    from clew.features.files import watching  # noqa: PLC0415  (declared by every command, needed by few)

    return await watching.read_watched_file(context, scope, path)


async def undo_files(call: CommandCall, argument: str) -> str:
    """Undo the changes of the last turn that changed files; return a report."""
    from clew.features.files import undo  # noqa: PLC0415  (declared by every command, needed by few)

    return await undo.undo_files(call, argument)
