"""No module, class or function grows past what one can hold in mind."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
MODULE, CLASS, FUNCTION = 600, 400, 60

#: Exceptions, with their reasons: ``"src/clew/x.py"`` or ``"src/clew/x.py::Class.method"``.
EXCEPTIONS: dict[str, str] = {}


def oversized(path: Path) -> Iterator[tuple[str, str]]:
    """Name and size of everything in a file that is over its budget."""
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT).as_posix()
    if (lines := text.count("\n")) > MODULE:
        yield name, f"module of {lines} lines, budget {MODULE}"
    for inner, node in definitions(ast.parse(text)):
        budget = CLASS if isinstance(node, ast.ClassDef) else FUNCTION
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > budget:
            yield f"{name}::{inner}", f"{type(node).__name__} of {lines} lines, budget {budget}"


Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def definitions(parent: ast.AST, prefix: str = "") -> Iterator[tuple[str, Definition]]:
    """Every class and function below a node, with its dotted name."""
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, Definition):
            yield prefix + node.name, node
            yield from definitions(node, f"{prefix}{node.name}.")
        else:
            yield from definitions(node, prefix)


def test_everything_is_within_its_budget_or_a_listed_exception() -> None:
    files = [path for top in ("src", "tests", "bench") for path in (ROOT / top).rglob("*.py")]
    found = {name: size for path in files for name, size in oversized(path)}
    over = [f"{name}: {size}" for name, size in sorted(found.items()) if name not in EXCEPTIONS]
    stale = sorted(EXCEPTIONS.keys() - found.keys())
    assert not over, "split by noun:\n" + "\n".join(over)
    assert not stale, f"within budget again, take off the list: {stale}"


def test_a_function_over_budget_is_found_wherever_it_hides(tmp_path: Path) -> None:
    body = "\n".join("            pass" for _ in range(FUNCTION))
    tree = ast.parse(f"if True:\n    class A:\n        async def f(self):\n{body}\n")
    sizes = {name: (node.end_lineno or 0) - node.lineno + 1 for name, node in definitions(tree)}
    assert sizes == {"A": FUNCTION + 2, "A.f": FUNCTION + 1}
