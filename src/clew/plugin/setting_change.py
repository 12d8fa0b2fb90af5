"""Changes of settings: written to ``config.toml``, and applied where the code reads them again."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final, cast

from clew.config.load import load_settings
from clew.config.toml_edit import write_setting
from clew.core.text import REDACTED
from clew.errors import ClewError, SettingsError, UsageError
from clew.plugin.loading import get_features
from clew.record import Record

if TYPE_CHECKING:
    from pathlib import Path

    from clew.config.settings import Origin, Settings

#: Origins that count before the file.
_STRONGER: Final = ("flag", "environment")


class SettingChange(Record):
    """A setting that was written."""

    name: str
    file: Path
    #: The running process uses it already.
    applied: bool
    #: What counts before the file, such as an environment variable; ``None`` if nothing does.
    overridden_by: str | None

    def describe(self) -> str:
        """Return a sentence that says from when on the change counts."""
        done = f"{self.name} is written to {self.file}"
        if self.overridden_by is not None:
            return f"{done}, but {self.overridden_by} counts before it: change that"
        if self.applied:
            return f"{done} and applies now"
        return (
            f"{done} and holds once clew is started again: stop clew serve, or the terminal UI, "
            "and start it again"
        )


def change_setting(settings: Settings, name: str, value: object) -> SettingChange:
    """
    Write one setting (``section.key``) to the file, and apply it if it can be; ``None`` removes it.

    :raises UsageError: if the layout of the file does not allow the edit, or the value has
        the place of a hidden password
    :raises SettingsError: if there is no such setting, or the value cannot be used
    :raises ClewError: if the file cannot be written
    """
    if _has_hidden_part(value):
        raise UsageError(
            f"{name}: {REDACTED} stands for a password that is not shown: write it out, or keep "
            "it in the environment"
        )
    features = get_features(settings)
    try:
        file = write_setting(
            settings.home,
            name,
            value,
            catalog=features.catalog,
            environ=os.environ,
            find_problems=features.find_settings_problems,
        )
    except SettingsError as error:
        raise SettingsError(*_without_new_line(error, name)) from None
    overridden_by = _find_stronger(settings.origins.get(name))
    applied = overridden_by is None and _apply_setting(settings, name)
    return SettingChange(name=name, file=file, applied=applied, overridden_by=overridden_by)


def is_live(settings: Settings, name: str) -> bool:
    """Return whether a change of a setting applies to a running process."""
    field = get_features(settings).catalog.find_field(tuple(name.split(".")))
    return field is not None and field.live


def _without_new_line(error: SettingsError, name: str) -> list[str]:
    """Return the problems without the line in which the setting would have been: it has none."""
    own = re.compile(rf".*, line \d+: (?={re.escape(name)} )")
    return [own.sub("", problem, count=1) for problem in error.problems]


def _has_hidden_part(value: object) -> bool:
    if isinstance(value, str):
        return REDACTED in value
    if isinstance(value, dict):
        return any(map(_has_hidden_part, cast("dict[str, object]", value).values()))
    return isinstance(value, list) and any(map(_has_hidden_part, cast("list[object]", value)))


def _find_stronger(origin: Origin | None) -> str | None:
    if origin is None or origin.kind not in _STRONGER:
        return None
    return origin.place if origin.kind == "flag" else f"the environment variable {origin.place}"


def _apply_setting(settings: Settings, name: str) -> bool:
    table, _, key = name.rpartition(".")
    features = get_features(settings)
    section = features.sections.get(table)
    if section is None or not is_live(settings, name):
        return False
    try:
        newer = load_settings(home=settings.home, environ=os.environ, catalog=features.catalog)
    except ClewError:  # something else in the environment is wrong: the next start says so
        return False
    section.take_over(newer, key)
    return True
