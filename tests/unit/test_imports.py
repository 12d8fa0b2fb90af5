"""Imports that leave out what is not used, and still find it when it is."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

import pytest

from clew.lazy_imports import hide_modules, lazy_packages

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES = {
    "optional/__init__.py": "try:\n    import extra\nexcept ImportError:\n    extra = None\n",
    "extra.py": "",
    "names/__init__.py": '"""Names."""\nfrom __future__ import annotations\n'
    "from .one import first as first, second as other\n"
    "from .two import (\n    third as third,\n)\n",
    "names/one.py": "first, second = 1, 2\n",
    "names/two.py": "from .one import first\nthird = 3\n",
    "names/three.py": "fourth = 4\n",
    "works/__init__.py": "from .one import first\nprint(first)\n",
    "works/one.py": "first = 1\n",
}


@pytest.fixture(autouse=True)
def _packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    yield
    for package in ("optional", "extra", "names", "works"):
        for name in imported(package):
            del sys.modules[name]


def test_a_library_does_without_what_it_would_take_along() -> None:
    with hide_modules("extra"):
        assert importlib.import_module("optional").extra is None
    assert importlib.import_module("extra").__name__ == "extra"


def test_an_earlier_import_is_kept() -> None:
    extra = importlib.import_module("extra")
    with hide_modules("extra"):
        assert importlib.import_module("optional").extra is extra
    assert sys.modules["extra"] is extra


def test_a_name_is_imported_when_it_is_asked_for() -> None:
    with lazy_packages("names"):
        names = importlib.import_module("names")
    assert imported("names") == {"names"}
    assert names.third == 3
    assert imported("names") == {"names", "names.one", "names.two"}
    assert names.other == 2
    assert names.one.first == 1


def test_its_modules_are_imported_without_it() -> None:
    with lazy_packages("names"):
        assert importlib.import_module("names.three").fourth == 4
    assert imported("names") == {"names", "names.three"}


def test_all_its_names_are_listed_and_no_others_are_found() -> None:
    with lazy_packages("names"):
        names = importlib.import_module("names")
    assert names.__all__ == ["first", "other", "third"]
    with pytest.raises(AttributeError, match="module 'names' has no attribute 'fourth'"):
        _ = names.fourth


def test_a_package_that_does_more_than_hand_on_names_is_imported_as_always(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with lazy_packages("works"):
        importlib.import_module("works")
    assert capsys.readouterr().out == "1\n"


def test_a_later_import_works_as_before() -> None:
    with lazy_packages("names"):
        pass
    importlib.import_module("names")
    assert imported("names") == {"names", "names.one", "names.two"}


def imported(package: str) -> set[str]:
    return {name for name in sys.modules if name.split(".")[0] == package}
