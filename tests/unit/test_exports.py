"""The public surface is the list ``clew.__all__``, and nothing else is public by accident."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import clew

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "use-clew-as-a-library.md"
#: Left behind in every module by ``from __future__ import annotations`` and typing.
BYPRODUCTS = {"TYPE_CHECKING", "annotations", "import_module"}
#: Without these nobody could use Clew from Python.
ESSENTIAL = {"Channel", "ClewError", "Engine", "Store", "hookimpl", "open_application"}


def test_the_list_has_what_a_program_needs_sorted_and_once() -> None:
    assert set(clew.__all__) >= ESSENTIAL
    assert sorted(set(clew.__all__)) == clew.__all__


@pytest.mark.parametrize("name", clew.__all__)
def test_every_name_on_the_list_exists_and_is_documented(name: str) -> None:
    value = getattr(clew, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert inspect.getdoc(value)
    assert f"`{name}`" in PAGE.read_text(encoding="utf-8")


def test_nothing_else_is_public_but_modules() -> None:
    public = {
        name
        for name, value in vars(clew).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert public - BYPRODUCTS - set(clew.__all__) == set()
    assert dir(clew) == clew.__all__


def test_a_name_that_is_not_on_the_list_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = clew.Nothing  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys; before = set(sys.modules); import clew; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours = {name for name in done.stdout.split() if name.partition(".")[0] == "clew"}
    assert ours == {"clew", "clew.distribution"}
    assert len(done.stdout.split()) < 60
