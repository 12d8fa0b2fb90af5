"""Files: tools that read, list, search, write and edit files of the workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.features.files import tools

if TYPE_CHECKING:
    from clew.plugin import Registry


def register(registry: Registry) -> None:
    """Register the feature."""
    registry.add_migrations(
        f"{__name__}.migrations", of_conversation={"files_change": "conversation"}
    )
    for reader in (tools.read_file, tools.list_files, tools.search_files):
        registry.add_tool(reader, effect="pure", facts=tools.make_read_facts)
    for writer in (tools.write_file, tools.edit_file):
        registry.add_tool(writer, effect="idempotent", facts=tools.make_write_facts, in_order=True)
