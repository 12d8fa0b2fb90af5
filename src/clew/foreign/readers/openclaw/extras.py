"""What OpenClaw keeps beside sessions and jobs: settings, people."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any, Final

from clew.core.payload import as_list, as_object, as_text
from clew.foreign.folders import get_nested, read_json
from clew.foreign.homes import ForeignPerson, ForeignSetting
from clew.foreign.sqlite_files import ForeignDatabase

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

#: Their names, ours (empty if there is none).
_SETTINGS: Final = {
    "agents.defaults.userTimezone": "schedule.timezone",
    "agents.defaults.contextTokens": "model.context_window",
    "agents.defaults.thinkingDefault": "",
}
_ALLOWED: Final = "-allowFrom.json"


def list_settings(config: Mapping[str, Any]) -> Iterator[ForeignSetting]:
    """Yield the settings that mean something here."""
    told = get_nested(config, "agents.defaults.model")
    provider, _, model = (as_text(told) or as_text(as_object(told).get("primary"))).partition("/")
    if model:
        yield ForeignSetting(origin="model", name="model.name", value=f"{provider}:{model}")
    for origin, ours in _SETTINGS.items():
        if value := as_text(get_nested(config, origin)):
            yield ForeignSetting(origin=origin, name=ours, value=value)


def query_jobs(state: Path) -> list[dict[str, Any]]:
    """Return the jobs of the database; none if it cannot be read."""
    query = "SELECT job_id, enabled, job_json FROM cron_jobs ORDER BY sort_order, job_id"
    return [
        {"id": row["job_id"], **_parse(row["job_json"]), "enabled": bool(row["enabled"])}
        for row in _query(state, query)
    ]


def _query(state: Path, query: str) -> Sequence[sqlite3.Row]:
    try:
        return ForeignDatabase(state).read(lambda c: c.execute(query).fetchall())
    except (sqlite3.Error, OSError):
        return ()


def _parse(text: str) -> dict[str, Any]:
    try:
        return as_object(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def list_allowed(folder: Path, config: Mapping[str, Any], state: Path) -> Iterator[ForeignPerson]:
    """Yield the people who were let in: in the database, in files, and by the settings."""
    found = [*_query_allowed(state), *_read_allowed(folder), *_list_configured(config)]
    for platform, name in dict.fromkeys(found):
        if name and name != "*":
            yield ForeignPerson(platform=platform, id=name)


def _query_allowed(state: Path) -> list[tuple[str, str]]:
    query = "SELECT DISTINCT channel_key, entry FROM channel_pairing_allow_entries"
    return [(row["channel_key"], row["entry"]) for row in _query(state, query)]


def _read_allowed(folder: Path) -> Iterator[tuple[str, str]]:
    for file in sorted(folder.glob(f"credentials/*{_ALLOWED}")):
        platform = file.name.removesuffix(_ALLOWED).partition("-")[0]
        for name in as_list(as_object(read_json(file)).get("allowFrom")):
            yield platform, as_text(name)


def _list_configured(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for platform, value in as_object(config.get("channels")).items():
        told = as_object(value)
        for one in (told, *map(as_object, as_object(told.get("accounts")).values())):
            for name in as_list(one.get("allowFrom")):
                yield platform, as_text(name).removeprefix(f"{platform}:")
