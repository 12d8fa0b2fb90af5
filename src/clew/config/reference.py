"""
Reference page of all settings.

``python -m clew.config.reference docs/reference/settings.md`` writes it.
"""

# The page keeps the width of the other pages.
# ruff: noqa: E501

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from clew.config.introspection import NAME_PLACEHOLDER, SettingDescription, describe_settings
from clew.config.lookup import CORE_CATALOG
from clew.config.settings import SECTIONS, ChannelSettings, ProviderSettings
from clew.generated_page import write_page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.config.lookup import SettingsCatalog

HEAD = """\
# Settings

<!-- Made by `python -m clew.config.reference docs/reference/settings.md`: do not edit. -->

A setting has one name everywhere:

| where | how |
|---|---|
| command line | `clew --set section.key=value …` |
| environment | `CLEW_SECTION__KEY=value`; an empty variable counts as not set |
| `config.toml` in `CLEW_HOME` | `key = value` under `[section]` |

The first of these that says something wins, then the default. `clew config show` prints every value and
where it comes from, `clew config check` what is wrong with them, `clew config schema` a JSON schema for
editors; `clew config set NAME VALUE` writes one, and `clew config unset NAME` removes it. Unknown settings are errors that name the nearest known one.

`CLEW_HOME` (or `clew --home PATH`) is the folder that holds everything; by default the platform's user data folder
for `clew`.

How values are written:

| type | in `config.toml` | in the environment and after `--set` |
|---|---|---|
| duration | `"500ms"`, `"90s"`, `"15m"`, `"24h"`, `"7d"`, or a number of seconds | the same without quotes |
| time of day | `"04:00"` | `04:00` |
| list | `["a", "b"]` | `a,b` or `["a", "b"]` |
| flag | `true`, `false` | `true`, `yes`, `on`, `1` or `false`, `no`, `off`, `0` |
| secret | `{ env = "NAME" }`, `{ file = "PATH" }` or text | the text, or `CLEW_MODEL__API_KEY__ENV=NAME`, `CLEW_MODEL__API_KEY__FILE=PATH` |

A secret is read when it is used and never shown. A file is read without the line end behind the secret; its path is
relative to `CLEW_HOME`. `config.toml` is made readable to its owner only.
"""

CHANNELS_NOTE = """\
Each channel has a table of its own, `[channels.telegram]`. Beside the keys below it may hold keys that only this
channel knows, and no other: `clew config check`, `clew doctor` and `clew serve` refuse unknown keys and unknown channels, and
name the nearest one. Text under a name that ends in `token`, `secret`, `password`, `passphrase` or `key` is a secret there,
too.
"""


PROVIDERS_NOTE = """\
NAME is what stands before the colon in a model's name: `[providers.anthropic]`, `[providers.openai-chat]`. In the
environment a hyphen is an underscore: `CLEW_PROVIDERS__OPENAI_CHAT__BASE_URL`.

One rule says where each model is asked: the main one, `fallback`, `compaction.model`, `session.title_model`, those that
features name (`goals.judge`, `agents.NAME.model`), one chosen with `/model`.

1. If its provider has a table here: at that `base_url` (else the provider's own address), with that `api_key`.
2. Else, if it is of the same provider as `model.name`: as that one, at `model.base_url` with `model.api_key`. `openai`, `openai-chat` and
   `openai-responses` are one provider, so a second model on a local server needs nothing more, and no text leaves that
   server because another form of the name was used.
3. Otherwise: at the provider's own address, with the provider's own key from the environment.

A key in the environment is only sent to its own provider, never to a `base_url`. A local model with OpenAI as its
fallback:

```toml
[model]
name = "openai-chat:llama3"
base_url = "http://127.0.0.1:11434/v1"
fallback = ["openai:gpt-5-mini"]
[providers.openai]
api_key = { env = "OPENAI_API_KEY" }
```

`model.timeout` holds for all models. Where a provider cannot honour what is set, `clew config check`, `clew doctor` and
the start say so: `cohere` has one address only, `openai-codex` and `openai-chatgpt` sign in by themselves.
"""


def render_reference(catalog: SettingsCatalog = CORE_CATALOG) -> str:
    """Return the page as Markdown, with the sections of features too."""
    return "\n".join([HEAD, *_render_sections(catalog)])


def _render_sections(catalog: SettingsCatalog) -> Iterator[str]:
    for name, kind in (*SECTIONS.items(), *catalog.feature_sections.items()):
        yield _render_section(f"`[{name}]`", str(kind.__doc__), name, catalog)
    yield _render_section(
        f"`[providers.{NAME_PLACEHOLDER}]`",
        f"{ProviderSettings.__doc__}\n\n{PROVIDERS_NOTE.rstrip()}",
        "providers",
        catalog,
    )
    yield _render_section(
        f"`[channels.{NAME_PLACEHOLDER}]`",
        f"{ChannelSettings.__doc__}\n\n{CHANNELS_NOTE.rstrip()}",
        "channels",
        catalog,
    )
    for name, kind in catalog.feature_tables.items():
        title = f"`[{name}.{NAME_PLACEHOLDER}]`"
        yield _render_section(title, str(kind.__doc__), name, catalog)


def _render_section(title: str, text: str, table: str, catalog: SettingsCatalog) -> str:
    found = describe_settings(catalog)
    rows = [_render_row(one) for one in found if one.name.split(".")[0] == table]
    head = ["| key | type | default | meaning |", "|---|---|---|---|"]
    return "\n".join([f"## {title}\n", f"{text}\n", *head, *rows, ""])


def _render_row(one: SettingDescription) -> str:
    key = one.name.rpartition(".")[2]
    cells = [f"`{key}`<br>`{one.env}`", one.expects, _format_default(one), one.doc]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _format_default(one: SettingDescription) -> str:
    if one.default_doc is not None:
        return one.default_doc
    return "none" if one.default is None else f"`{json.dumps(one.default)}`"


def main() -> None:
    """Write the page to the file given as argument, else print it."""
    # Features are above the settings; only this program needs both.
    features = import_module("clew.plugin.loading").load_features(folder=Path())
    write_page(render_reference(features.catalog))


if __name__ == "__main__":
    main()
