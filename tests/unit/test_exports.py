"""The public surface is the list ``clew.__all__``, and nothing else is public by accident."""

from __future__ import annotations

from types import ModuleType
from typing import cast

import clew

EXPORTS = cast("list[str]", getattr(clew, "__all__", []))
#: Left behind in every module by ``from __future__ import annotations`` and typing.
BYPRODUCTS = {"annotations", "TYPE_CHECKING"}


def test_the_list_is_sorted_and_names_nothing_twice() -> None:
    assert sorted(set(EXPORTS)) == EXPORTS


def test_every_name_on_the_list_exists() -> None:
    assert [name for name in EXPORTS if not hasattr(clew, name)] == []


def test_nothing_else_is_public_but_modules() -> None:
    public = {
        name
        for name, value in vars(clew).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert public - BYPRODUCTS - set(EXPORTS) == set()
