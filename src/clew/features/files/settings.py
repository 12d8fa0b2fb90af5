"""The settings of files."""

from __future__ import annotations

from clew.config.builtin_types import integer_type
from clew.config.fields import setting
from clew.record import Record


class FilesSettings(Record):
    """The versions of changed files, which the store keeps for `/undo files`."""

    keep_days: int = setting(
        integer_type(least=1),
        30,
        "Days for which a version is kept. After that `/undo files` cannot undo the change.",
        live=True,
    )
    keep_size: int = setting(
        integer_type(least=1, unit="MB"),
        1024,
        "Size that all versions together may have, in MB; the oldest go first.",
        live=True,
    )
