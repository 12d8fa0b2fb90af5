"""Every setting is described once, and page, schema and example agree with it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from clew.config import Settings, load_settings
from clew.config.introspection import describe_settings
from clew.config.reference import render_reference
from clew.config.schema import build_json_schema
from clew.config.settings import SECTIONS
from clew.plugin.loading import load_features

ROOT = Path(__file__).parents[2]
HOME = Path("/nowhere")
#: With the settings of the built-in features.
CATALOG = load_features(folder=HOME).catalog

#: Names that must exist.
PROMISED = """
[model]
name = "openai-chat:llama3"
base_url = "http://127.0.0.1:11434/v1"
api_key = { env = "OPENAI_API_KEY" }
context_window = 200000
fallback = ["anthropic:claude-sonnet-5"]
timeout = "120s"
[agent]
instructions = "..."
object = "my_package.agents:agent"
max_steps = 100
[store]
url = "sqlite:///clew.db"
[api]
host = "127.0.0.1"
port = 8420
token = { env = "CLEW_TOKEN" }
[session]
reset = "none"
idle = "24h"
at = "04:00"
timezone = "Europe/Berlin"
double_text = "auto"
[compaction]
enabled = true
threshold = 0.75
keep_recent = 0.2
model = "openai:gpt-5-mini"
[lease]
seconds = 15
[channels.telegram]
token = { env = "TELEGRAM_BOT_TOKEN" }
base_url = "https://api.telegram.org/bot"
allow = ["42"]
double_text = "queue"
[tools]
modules = ["my_tools"]
[plugins]
enabled = ["name"]
"""


def test_the_page_of_all_settings_is_up_to_date() -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    again = "python -m clew.config.reference docs/reference/settings.md"
    assert page == render_reference(CATALOG), f"write it anew: {again}"


def test_every_setting_says_what_it_means_and_which_value_it_takes() -> None:
    for one in describe_settings(CATALOG):
        assert one.doc.endswith("."), one.name
        assert one.expects, one.name
        assert one.env == "CLEW_" + one.name.replace(".", "__").upper()


def test_every_promised_key_is_a_setting_and_has_a_schema() -> None:
    tables = tomllib.loads(PROMISED)
    tables["channels"]["NAME"] = tables["channels"].pop("telegram")
    promised = set(_names(tables))
    assert promised - {one.name for one in describe_settings()} == set()
    properties = build_json_schema()["properties"]
    schemas = {f"{table}.{key}" for table in SECTIONS for key in properties[table]["properties"]}
    channel = build_json_schema()["$defs"]["channel"]["properties"]
    assert promised <= schemas | {f"channels.NAME.{key}" for key in channel}


def _names(tables: dict[str, Any]) -> list[str]:
    flat = {
        f"{section}.{key}": value
        for section, table in tables.items()
        for key, value in table.items()
    }
    channel = flat.pop("channels.NAME")
    return [*flat, *(f"channels.NAME.{key}" for key in channel)]


def test_the_promised_defaults_hold() -> None:
    made = load_settings(home=HOME, environ={"TZ": "Europe/Berlin"})
    assert made == Settings(
        home=HOME,
        model=made.model,
        session=made.session,
    )
    assert (made.model.name, made.model.timeout.total_seconds()) == ("offline", 120)
    assert (made.agent.max_steps, made.api.host, made.api.port) == (100, "127.0.0.1", 8420)
    assert made.store.url == "sqlite:///clew.db"
    assert (made.session.reset, made.session.timezone) == ("none", "Europe/Berlin")
    assert (made.session.idle.total_seconds(), f"{made.session.at:%H:%M}") == (86400, "04:00")
    assert (made.compaction.threshold, made.compaction.keep_recent) == (0.75, 0.2)
    assert (made.lease.seconds, made.lease.duration.total_seconds()) == (15, 15)


def test_the_schema_closes_every_section_but_the_open_ones() -> None:
    schema = build_json_schema()
    assert schema["additionalProperties"] is False
    closed = {
        name for name, one in schema["properties"].items() if one["additionalProperties"] is False
    }
    assert closed == SECTIONS.keys() - {"plugins"}
    assert schema["properties"]["plugins"]["additionalProperties"] == {"type": "object"}


def test_the_schema_accepts_what_it_gives_as_default() -> None:
    for table in build_json_schema()["properties"].values():
        for name, one in table.get("properties", {}).items():
            if isinstance(default := one.get("default"), str) and "pattern" in one:
                assert re.search(one["pattern"], default), name


def test_a_time_zone_that_the_machine_does_not_name_is_utc() -> None:
    assert load_settings(home=HOME, environ={"TZ": ":Asia/Tokyo"}).session.timezone == "Asia/Tokyo"
    assert load_settings(home=HOME, environ={"TZ": "No/Where"}).session.timezone
