"""The page of the architecture shows the figures of this code, and its rules hold."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from scripts.architecture import (
    count_words,
    find_broad_handlers,
    find_cycles,
    measure_packages,
    read_tree,
    render_cycles,
    render_handlers,
    replace_block,
    update_page,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scripts.architecture import Module

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "clew"
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
AGAIN = "update it: python scripts/architecture.py docs/explanation/architecture.md"
#: Sizes change with every commit: the page may lag behind by a tenth.
SHARE, FEW = 0.1, 3
#: Roles that every database driver has, and the file of each.
DRIVER_ROLES = {
    "changes.py": "notification of changes",
    "errors.py": "translation of the driver's errors",
    "liveness.py": "proof that a process is alive",
    "macros.py": "macros of the SQL dialect",
    "opening.py": "opening of connections",
    "search.py": "search index",
    "staged_store.py": "store that is filled aside and then put in place",
    "store.py": "store for an event loop",
    "sync_store.py": "store without one",
    "tx.py": "transaction",
}


@pytest.fixture(scope="module")
def modules() -> Sequence[Module]:
    return read_tree(SOURCE)


def test_the_tables_of_the_page_are_up_to_date(modules: Sequence[Module]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert render_handlers(modules) in page, AGAIN
    assert render_cycles(modules) in page, AGAIN
    told, true = (_read_figures(text) for text in (page, update_page(page, modules)))
    assert told.keys() == true.keys(), AGAIN
    for name, figures in true.items():
        assert told[name] == pytest.approx(figures, rel=SHARE, abs=FEW), f"{name}: {AGAIN}"


def _read_figures(page: str) -> dict[str, list[float]]:
    _, _, block = page.partition("<!-- packages -->")
    rows = [line.strip("| ").split(" | ") for line in block.partition("<!--")[0].splitlines()]
    return {
        row[0]: [float(cell.replace(",", "")) for cell in row[1:]] for row in rows[4:] if row[1:]
    }


def test_no_modules_import_each_other_in_a_circle(modules: Sequence[Module]) -> None:
    assert find_cycles(modules) == []


def test_every_broad_handler_that_swallows_gives_its_reason(modules: Sequence[Module]) -> None:
    found = [one for one in find_broad_handlers(modules) if not (one.raises or one.reason)]
    assert [f"{one.path}: {one.function}" for one in found] == []


def test_function_names_have_at_least_as_many_words_as_we_aim_at(modules: Sequence[Module]) -> None:
    assert float(measure_packages(modules)[-1][5]) >= 1.8


def test_no_public_class_name_is_defined_twice(modules: Sequence[Module]) -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for module in modules:
        for outer, node in module.statements:
            if not outer and isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module.path)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_the_same_role_has_the_same_file_name_in_both_drivers() -> None:
    drivers = [
        {path.name for path in (SOURCE / "store" / name).glob("*.py")}
        for name in ("sqlite", "postgres")
    ]
    for files in drivers:
        assert DRIVER_ROLES.keys() - files == set()
    assert drivers[0] & drivers[1] - {"__init__.py"} == DRIVER_ROLES.keys(), "list the new role"


def test_the_script_counts_what_it_says(tmp_path: Path) -> None:
    package = tmp_path / "sample"
    package.mkdir()
    (package / "__init__.py").write_text('"""Docstring."""\n')
    (package / "a.py").write_text(
        "from typing import TYPE_CHECKING\n\n# A comment.\nif TYPE_CHECKING:\n"
        "    from . import b\n\n\ndef read_one(x):\n    '''Do it.'''\n    try:\n"
        "        return x\n    except Exception:  # a reason\n        return None\n"
    )
    (package / "b.py").write_text("def f():\n    from sample.a import read_one\n")
    found = read_tree(package)
    assert find_cycles(found) == [["sample.a", "sample.b"]]
    assert [(one.function, one.reason) for one in find_broad_handlers(found)] == [
        ("read_one", "a reason")
    ]
    row = measure_packages(found)[-1]
    assert row == ["**all**", "3", "10", "2", "4", "1.50", "1", "1"]
    assert [count_words(name) for name in ("_load_all", "f", "visitHTTPError", "x2")] == [
        2,
        1,
        3,
        1,
    ]


def test_a_page_without_a_block_is_refused() -> None:
    with pytest.raises(SystemExit):
        replace_block("<!-- a -->", "a", "text")
