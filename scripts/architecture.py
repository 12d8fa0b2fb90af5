"""
``python scripts/architecture.py docs/explanation/architecture.md [WHEEL ...]``: update its tables.

A table stands between two comments that name it. The one of other packages is measured from their
wheels, and left alone without any. Lines of code are neither blank, comment nor docstring.
"""

from __future__ import annotations

import ast
import re
import statistics
import sys
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

ROOT: Final = Path(__file__).parents[1]
HEADING: Final = (
    "modules",
    "lines of code",
    "median module",
    "median function",
    "words per function name",
    "import cycles",
    "broad handlers",
)

Statement = ast.stmt | ast.ExceptHandler | ast.match_case
Function = ast.FunctionDef | ast.AsyncFunctionDef
_BLOCKS: Final = ("body", "handlers", "orelse", "finalbody", "cases")


@dataclass(frozen=True, kw_only=True, slots=True)
class Module:
    """Module of a package, with its statements and the lines that hold code."""

    name: str
    path: str
    is_package: bool
    lines: Sequence[str]
    code_lines: frozenset[int]
    #: Each with the dotted name of the class or function that holds it.
    statements: Sequence[tuple[str, Statement]]

    def functions(self) -> Iterator[Function]:
        """Yield every function and method, also nested ones."""
        return (node for _, node in self.statements if isinstance(node, Function))


@dataclass(frozen=True, kw_only=True, slots=True)
class BroadHandler:
    """Handler of any exception, with the reason that the source gives."""

    path: str
    function: str
    #: It raises on every path, so nothing is lost.
    raises: bool
    reason: str


def read_tree(folder: Path) -> list[Module]:
    """Read the package in a folder."""
    files = sorted(folder.rglob("*.py"))
    return [
        _parse_module(path.relative_to(folder.parent).as_posix(), path.read_text(encoding="utf-8"))
        for path in files
    ]


def read_wheel(wheel: Path) -> list[Module]:
    """Read the package in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".py"))
        return [_parse_module(name, archive.read(name).decode()) for name in names]


def _parse_module(path: str, text: str) -> Module:
    parts = PurePosixPath(path).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    tree, lines = ast.parse(text), text.splitlines()
    statements = list(_walk_statements(tree, ""))
    docstrings = {
        line
        for node in (tree, *(node for _, node in statements))
        for line in _docstring_lines(node)
    }
    filled = {n for n, line in enumerate(lines, 1) if line.strip() and line.lstrip()[0] != "#"}
    return Module(
        name=".".join(parts[:-1] if is_package else parts),
        path=path,
        is_package=is_package,
        lines=lines,
        code_lines=frozenset(filled - docstrings),
        statements=statements,
    )


def _walk_statements(parent: ast.AST, place: str) -> Iterator[tuple[str, Statement]]:
    for block in _BLOCKS:
        found = getattr(parent, block, ())
        for node in cast("list[Statement]", found) if isinstance(found, list) else ():
            yield place, node
            is_named = isinstance(node, ast.ClassDef | Function)
            yield from _walk_statements(
                node, f"{place}.{node.name}".lstrip(".") if is_named else place
            )


def _docstring_lines(node: ast.AST) -> range:
    if not isinstance(node, ast.Module | ast.ClassDef | Function) or not ast.get_docstring(node):
        return range(0)
    return _line_range(node.body[0])


def _line_range(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def count_words(name: str) -> int:
    """Count the words of a function name."""
    return len(re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[A-Z]", name)) or 1


def find_cycles(modules: Sequence[Module]) -> list[list[str]]:
    """
    Return the groups of modules that import each other, directly or not.

    Every import counts: at the top, in functions and under ``TYPE_CHECKING``.
    """
    known = {module.name for module in modules}
    graph = {module.name: set(_find_imports(module, known)) for module in modules}
    reachable = {name: _find_reachable(graph, name) for name in graph}
    groups = {
        frozenset({name, *(other for other in reachable[name] if name in reachable[other])})
        for name in graph
        if name in reachable[name]
    }
    return sorted(sorted(group) for group in groups if len(group) > 1)


def _find_imports(module: Module, known: set[str]) -> Iterator[str]:
    for _, node in module.statements:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            source = _resolve_source(module, node)
            names = (f"{source}.{alias.name}" for alias in node.names)
            found = {name if name in known else source for name in names}
            yield from found & known


def _resolve_source(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = module.name.split(".")[: None if module.is_package else -1]
    above = package[: len(package) - node.level + 1]
    return ".".join([*above, node.module] if node.module else above)


def _find_reachable(graph: Mapping[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = list(graph[start] - {start})
    while waiting:
        if (name := waiting.pop()) not in seen:
            seen.add(name)
            waiting.extend(graph[name])
    return seen


def find_broad_handlers(modules: Iterable[Module]) -> Iterator[BroadHandler]:
    """Yield the handlers that catch ``Exception``, ``BaseException`` or everything."""
    for module in modules:
        for function, node in module.statements:
            if isinstance(node, ast.ExceptHandler) and _is_broad(node):
                yield BroadHandler(
                    path=module.path,
                    function=function,
                    raises=isinstance(node.body[-1], ast.Raise),
                    reason=_find_reason(module.lines, node),
                )


def _is_broad(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        kind is None or (isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException"))
        for kind in kinds
    )


def _find_reason(lines: Sequence[str], handler: ast.ExceptHandler) -> str:
    """Return the comment behind the ``except``, or the one at the start of its block."""
    _, _, comment = lines[handler.lineno - 1].partition("  # ")
    if reason := re.sub(r"^noqa: [\w, ]*?\d+\s*(-\s*)?", "", comment).strip("() "):
        return reason
    block = lines[handler.lineno : handler.body[0].lineno - 1]
    return " ".join(line.strip().removeprefix("#").strip() for line in block)


def measure(name: str, modules: Sequence[Module], cycles: int) -> list[str]:
    """Return the cells of one row."""
    functions = [(module, node) for module in modules for node in module.functions()]
    sizes = [len(module.code_lines.intersection(_line_range(node))) for module, node in functions]
    named = [node.name for _, node in functions if not re.fullmatch(r"__\w+__", node.name)]
    words = [count_words(one) for one in named]
    return [
        name,
        str(len(modules)),
        f"{sum(len(module.code_lines) for module in modules):,}",
        f"{statistics.median(len(module.code_lines) for module in modules):.0f}",
        f"{statistics.median(sizes or [0]):.0f}",
        f"{statistics.mean(words or [0]):.2f}",
        str(cycles),
        str(sum(1 for _ in find_broad_handlers(modules))),
    ]


def measure_packages(modules: Sequence[Module]) -> list[list[str]]:
    """Return a row for each package of Clew, and one for all."""
    by_package: dict[str, list[Module]] = {}
    for module in modules:
        parts = PurePosixPath(module.path).parts
        by_package.setdefault(parts[1] if len(parts) > 2 else "(top)", []).append(module)
    cycles = find_cycles(modules)
    places = Counter(_package_of(cycle[0]) for cycle in cycles)
    rows = [measure(f"`{name}`", found, places[name]) for name, found in by_package.items()]
    rows.sort(key=lambda row: row[0])
    return [*rows, measure("**all**", modules, len(cycles))]


def _package_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 2 else "(top)"


def render_table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Render a Markdown table."""
    lines = [heading, ["---", *["--:"] * (len(heading) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def render_handlers(modules: Sequence[Module]) -> str:
    """Render the list of the handlers that do not raise again, each with its reason."""
    found = [handler for handler in find_broad_handlers(modules) if not handler.raises]
    rows = [
        [f"`{one.path.removeprefix('clew/')}`", f"`{one.function}`", one.reason] for one in found
    ]
    return render_table(["module", "function", "reason"], rows).replace("--:", "---")


def render_cycles(modules: Sequence[Module]) -> str:
    """Render the list of import cycles."""
    cycles = find_cycles(modules)
    return "\n".join(f"- `{'`, `'.join(cycle)}`" for cycle in cycles) or "There is none."


def replace_block(page: str, name: str, content: str) -> str:
    """Replace the content between the two comments that name a block."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    head, found, rest = page.partition(begin)
    _, closed, tail = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"the page has no block {name!r}")
    return f"{head}{begin}\n\n{content}\n\n{end}{tail}"


def update_page(page: str, modules: Sequence[Module]) -> str:
    """Return the page with the figures of Clew."""
    packages = render_table(["package", *HEADING], measure_packages(modules))
    page = replace_block(page, "packages", packages)
    page = replace_block(page, "cycles", render_cycles(modules))
    return replace_block(page, "handlers", render_handlers(modules))


def measure_wheel(wheel: Path) -> list[str]:
    """Return the row of a package as it is in its wheel."""
    name, version, *_ = wheel.name.split("-")
    modules = read_wheel(wheel)
    return measure(f"{name} {version}", modules, len(find_cycles(modules)))


def main() -> None:
    """Update the tables of the given page."""
    path, wheels = Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]]
    modules = read_tree(ROOT / "src" / "clew")
    page = update_page(path.read_text(encoding="utf-8"), modules)
    if wheels:
        own = measure("Clew", modules, len(find_cycles(modules)))
        rows = [own, *(measure_wheel(wheel) for wheel in wheels)]
        page = replace_block(page, "neighbours", render_table(["package", *HEADING], rows))
    path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
