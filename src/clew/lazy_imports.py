"""Lazy imports: import only the used parts of large libraries."""

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
def hide_modules(*names: str) -> Generator[None]:
    """
    Import within the block as if these modules were not installed.

    For optional dependencies that a library imports whenever they are installed. Modules
    imported before stay.
    """
    modules = cast("dict[str, object]", sys.modules)
    absent = [name for name in names if name not in modules]
    # ``None`` in ``sys.modules`` means "no such module".
    modules.update(dict.fromkeys(absent))
    try:
        yield
    finally:
        for name in absent:
            del modules[name]


@contextmanager
def lazy_packages(*packages: str) -> Generator[None]:
    """
    Import modules of these packages only when a name from them is used.

    Applies to imports within the block, of packages that only re-export names from their
    modules; others, and those imported before, are unaffected. Names stay lazy afterwards.
    """
    finder = _LazyFinder(packages)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _LazyFinder(MetaPathFinder):
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
        names = None if source is None else _find_reexports(source)
        if names is not None:
            spec.loader = _LazyLoader(names)
        return spec


class _LazyLoader(Loader):
    def __init__(self, names: Mapping[str, tuple[str, str]]) -> None:
        self._names = names

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _LazyPackage(spec.name, self._names)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__all__"] = list(self._names)


class _LazyPackage(ModuleType):
    """Package whose names are imported on first use."""

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


def _find_reexports(source: str) -> dict[str, tuple[str, str]] | None:
    """Return module and original name by name; ``None`` if the source does anything else."""
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
