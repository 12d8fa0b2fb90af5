"""The settings of the host of Hermes plugins."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from clew.config.builtin_types import DURATION, PATH, TEXTS
from clew.config.fields import setting
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class HermesSettings(Record):
    """Plugins written for Hermes Agent, which run in the process of Clew."""

    enabled_plugins: Sequence[str] = setting(
        TEXTS,
        (),
        "The plugins to run: names of folders with a `plugin.yaml` in `plugins` below "
        "`hermes.home` or below `hermes` in `CLEW_HOME`, or of entry points in the group "
        "`hermes_agent.plugins`. Their code may do whatever Clew may.",
    )
    trusted_plugins: Sequence[str] = setting(
        TEXTS, (), "Those of them whose tools run without asking. The calls of others ask."
    )
    home: Path | None = setting(
        PATH,
        None,
        "The folder that plugins find as `HERMES_HOME`, with `config.yaml`, `.env`, `plugins` and "
        "`skills`; without it, `hermes` in `CLEW_HOME`.",
    )
    timeout: timedelta = setting(
        DURATION,
        timedelta(seconds=5),
        "The time that a plugin has for a hook. A tool call about which it does not answer in time "
        "is blocked.",
    )
