"""The page for newcomers names files and functions that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "find-your-way.md"
ANSWER = re.compile(r"\[`([^`]+)`\]\(([^)]+)\) :: (`[^`]+`(?:, `[^`]+`)*)")


def read_answers() -> dict[str, set[str]]:
    answers: dict[str, set[str]] = {}
    for path, target, names in ANSWER.findall(PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parent / target).resolve() == ROOT / "src" / "clew" / path
        answers.setdefault(path, set()).update(re.findall(r"`([^`]+)`", names))
    return answers


def list_functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / "src" / "clew" / path).read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in tree.body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        found |= {
            prefix + each.name
            for each in inner
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
        }
    return found


def test_every_function_that_the_page_names_exists() -> None:
    lost = {path: named - list_functions(path) for path, named in read_answers().items()}
    assert {path: names for path, names in lost.items() if names} == {}


def test_every_answer_of_the_page_is_read() -> None:
    assert PAGE.read_text(encoding="utf-8").count(" :: ") == len(
        ANSWER.findall(PAGE.read_text(encoding="utf-8"))
    )
