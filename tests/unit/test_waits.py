"""No test waits without a bound for what nothing announces."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]
LEVELS = ["unit", "contract", "integration", "acceptance", "channels", "failing", "line", "tui"]

#: Loops that sleep and are meant to: each with its reason.
ALLOWED: dict[str, str] = {}


def test_no_test_waits_without_a_bound() -> None:
    found = {
        str(path.relative_to(TESTS)): loops
        for level in LEVELS
        for path in sorted((TESTS / level).rglob("*.py"))
        if (loops := _sleeping_loops(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert {path: lines for path, lines in found.items() if path not in ALLOWED} == {}
    assert found.keys() == ALLOWED.keys(), "an exception that is no longer needed"


def _sleeping_loops(tree: ast.Module) -> list[int]:
    return [
        loop.lineno
        for loop in ast.walk(tree)
        if isinstance(loop, ast.While) and any(map(_is_sleep, ast.walk(loop)))
    ]


def _is_sleep(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "sleep"
    )
