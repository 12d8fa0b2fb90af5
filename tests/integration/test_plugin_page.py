"""The plugin of the how-to page does what the page says, and the reference has every hook."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clew.errors import SettingsError
from clew.hooks import specs
from clew.hooks.manager import PluginManager, ToolVerdict, load_plugins

if TYPE_CHECKING:
    from collections.abc import Mapping

DOCS = Path(__file__).parents[2] / "docs"


def careful(folder: Path, options: Mapping[str, object]) -> PluginManager:
    page = (DOCS / "how-to" / "write-a-plugin.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (folder / "careful.py").write_text(code, encoding="utf-8")
    plugins = PluginManager()
    load_plugins(plugins, folder, ["careful"], {"careful": options})
    return plugins


async def test_the_plugin_of_the_page_blocks_asks_and_keeps_a_diary(tmp_path: Path) -> None:
    plugins = careful(tmp_path, {"limit": 50})
    try:
        blocked = await plugins.run_pre_tool_call(tool_name="delete", args={})
        dear = await plugins.run_pre_tool_call(tool_name="pay", args={"amount": 51})
        cheap = await plugins.run_pre_tool_call(tool_name="pay", args={"amount": 50})
        await plugins.notify_plugins("post_tool_call", {"tool_name": "pay", "status": "ok"})
    finally:
        plugins.close()
    assert blocked.block == "Nothing is deleted here."
    assert (dear, cheap) == (ToolVerdict(approve=True), ToolVerdict())
    assert (tmp_path / "diary.txt").read_text(encoding="utf-8") == "pay ok\n"


def test_a_plugin_that_cannot_do_with_its_settings_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"'careful' cannot be loaded: AttributeError"):
        careful(tmp_path, None)  # pyright: ignore[reportArgumentType]  (what is wrong with it)


def test_the_reference_has_every_hook_with_its_arguments() -> None:
    page = (DOCS / "reference" / "hooks.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `(\w+)\((.*?)\)`", page, re.MULTILINE))
    found = {
        name: ", ".join(inspect.signature(hook).parameters)
        for name, hook in vars(specs).items()
        if hasattr(hook, "clew_spec")
    }
    assert told == found
