"""The code of the page on Clew as a library runs as it is printed there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import clew

if TYPE_CHECKING:
    import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "use-clew-as-a-library.md"
BLOCK = re.compile(r"<!-- (\w+)\.py -->\n```python\n(.*?)```", re.DOTALL)


def _read_program(name: str) -> dict[str, Any]:
    """Run a block of the page and return what it defines."""
    blocks = dict(BLOCK.findall(PAGE.read_text(encoding="utf-8")))
    defined: dict[str, Any] = {"__name__": name}
    exec(compile(blocks[name], f"{name}.py", "exec"), defined)
    return defined


async def test_the_programs_of_the_page_do_what_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await _read_program("ask")["main"](tmp_path)
    outcome, _, answer = capsys.readouterr().out.strip().partition(" | ")
    assert outcome == "turn"
    assert answer

    flags = {"model.name": "offline"}
    settings = clew.load_settings(home=tmp_path, environ={}, flags=flags)
    async with clew.open_application(settings, role="test") as application:
        engine = application.engine
        assert await _read_program("follow")["follow"](engine, "Hello again")
        await _read_program("read")["print_log"](engine, "garden")
        log = capsys.readouterr().out
        assert "user Hello" in log
        assert "user Hello again" in log
        find = _read_program("errors")["find"]
        assert await find(engine, "nowhere") == "no such conversation"
        assert await find(engine, "garden") == await engine.resolve_name("garden")
