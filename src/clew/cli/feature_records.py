"""Access to the records of a feature, and their output, for its commands."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from clew.cli.output import format_table, get_outputs
from clew.cli.record_printer import open_configured_store
from clew.errors import UsageError
from clew.plugin.settings_tables import SettingsSection

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from clew.cli.common import CliContext
    from clew.config import Settings
    from clew.store.contract import Store, Tx

T = TypeVar("T")


def run_with_store(
    program: CliContext, feature: str, job: Callable[[Settings, Store], Awaitable[T]]
) -> T:
    """
    Run a job with the configured store, which has the tables of the feature.

    :raises UsageError: if the feature is disabled
    """

    async def open_and_run() -> T:
        settings = program.load_settings()
        if feature in settings.features.disabled:
            raise UsageError(f"the feature {feature} is disabled: take it out of features.disabled")
        async with open_configured_store(settings) as store:
            return await job(settings, store)

    return asyncio.run(open_and_run())


def run_in_store(program: CliContext, feature: str, job: Callable[[Tx, Settings], T]) -> T:
    """
    Run a job in one transaction of the configured store.

    :raises UsageError: if the feature is disabled
    """
    return run_with_store(program, feature, lambda settings, store: store.write(job, settings))


def load_section(settings: Settings, table: str, kind: type[T]) -> T:
    """Return the settings of a feature."""
    section = SettingsSection(table, kind)
    section.bind(settings)
    return section.get()


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, none: str) -> None:
    """Print rows under their headings, or a remark that there are none."""
    out, notes = get_outputs()
    if not rows:
        notes.print_dim(none)
        return
    for line in format_table(heads, rows):
        out.write(line + "\n")


def print_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Print the fields of one record, each on a line."""
    out, _ = get_outputs()
    for name, value in fields:
        out.write(f"{name:<13} {value}\n")
