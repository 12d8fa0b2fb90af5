"""A style sheet that names no class of ours or of the library styles nothing, silently."""

from __future__ import annotations

import re
from importlib import import_module
from pkgutil import walk_packages

from textual.dom import DOMNode

from clew import tui

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
TYPE = re.compile(r"(?<![\w.#$:-])[A-Z]\w+")


def test_every_type_in_a_style_sheet_is_a_class_of_a_widget() -> None:
    for module in walk_packages(tui.__path__, f"{tui.__name__}."):
        import_module(module.name)
    ours = list(_subclasses(DOMNode))
    known = {kind.__name__ for kind in ours}
    named = {
        (kind.__name__, name)
        for kind in ours
        if kind.__module__.startswith("clew.")
        for name in TYPE.findall(COMMENT.sub("", vars(kind).get("DEFAULT_CSS", "")))
    }
    assert ("ChatScreen", "Prompt") in named
    assert sorted(pair for pair in named if pair[1] not in known) == []


def _subclasses(kind: type[DOMNode]) -> set[type[DOMNode]]:
    return {kind}.union(*(_subclasses(below) for below in kind.__subclasses__()))
