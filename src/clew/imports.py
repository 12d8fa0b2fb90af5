"""Imports that bring only what is used: a library's size is mostly what nobody asks it for."""

from __future__ import annotations

import ast
import importlib
import sys
from contextlib import contextmanager
from importlib.abc import InspectLoader, Loader, MetaPathFinder
from importlib.machinery import PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from importlib.machinery import ModuleSpec


@contextmanager
def without(*names: str) -> Generator[None]:
    """
    Import within the block as if these modules were not installed.

    For what a library takes along whenever it is there, and does without where it is not. A module
    that was imported before stays.
    """
    modules = cast("dict[str, object]", sys.modules)
    absent = [name for name in names if name not in modules]
    # What the import system itself takes for "there is no such module".
    modules.update(dict.fromkeys(absent))
    try:
        yield
    finally:
        for name in absent:
            del modules[name]


@contextmanager
def on_demand(*packages: str) -> Generator[None]:
    """
    Import within the block none of these packages' modules before a name from them is used.

    Holds for packages that only hand on names from their modules; others, and those that were
    imported before, are as always. Afterwards, too, what was not used is imported when it is.
    """
    finder = _Finder(packages)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder(MetaPathFinder):
    def __init__(self, packages: Sequence[str]) -> None:
        self._packages = packages

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._packages:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or not isinstance(spec.loader, InspectLoader):
            return None
        source = spec.loader.get_source(fullname)
        names = None if source is None else _handed_on(source)
        if names is not None:
            spec.loader = _Loader(names)
        return spec


class _Loader(Loader):
    def __init__(self, names: Mapping[str, tuple[str, str]]) -> None:
        self._names = names

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Package(spec.name, self._names)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__all__"] = list(self._names)


class _Package(ModuleType):
    """A package whose names are imported when they are asked for."""

    def __init__(self, name: str, names: Mapping[str, tuple[str, str]]) -> None:
        super().__init__(name)
        self._names = names

    def __getattr__(self, name: str) -> object:
        if name in self._names:
            module, original = self._names[name]
            value = getattr(importlib.import_module(f"{self.__name__}.{module}"), original)
        elif any(name == module for module, _ in self._names.values()):
            value = importlib.import_module(f"{self.__name__}.{name}")
        else:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        setattr(self, name, value)
        return value


def _handed_on(source: str) -> dict[str, tuple[str, str]] | None:
    """By name: its module and its name there; ``None`` if the source does anything else."""
    names: dict[str, tuple[str, str]] = {}
    for statement in ast.parse(source).body:
        match statement:
            case ast.ImportFrom(module="__future__") | ast.Expr(value=ast.Constant()):
                pass
            case ast.ImportFrom(module=str(module), level=1) if "." not in module:
                for alias in statement.names:
                    names[alias.asname or alias.name] = module, alias.name
            case _:
                return None
    return names
