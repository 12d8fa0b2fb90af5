"""
Conversations that are trees of messages, as lines.

The line to the message that people see last is the conversation. A line that leaves it and in which
a person wrote is a branch. An answer that was generated again, and went no further, stays beside
the answer that was chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class MessageNode(Record):
    """A message, and the one before it."""

    parent: str | None
    is_user: bool = False


class MessageLine(Record):
    """One line from the root to a leaf."""

    path: Sequence[str]
    #: The first message that no line before has; ``None`` for the main line.
    leaves_at: str | None = None
    #: Messages beside the line, by the one that they follow; an empty key for the beginning.
    beside: Mapping[str, Sequence[str]]


def split_tree(nodes: Mapping[str, MessageNode], current: str) -> list[MessageLine]:
    """Return the main line, then the branches; each message is new in one of them."""
    if not nodes:
        return []
    leaves = _list_leaves(nodes)
    last = current if current in nodes else [*nodes, *leaves][-1]
    paths = [_trace(nodes, last)]
    firsts: list[str | None] = [None]
    beside: list[dict[str, list[str]]] = [{}]
    #: The line that each message is new in.
    covered = dict.fromkeys(paths[0], 0)
    # A circle, which only damage makes, has no leaf.
    for leaf in (*leaves, *nodes):
        if leaf in covered:
            continue
        path = _trace(nodes, leaf)
        new = [one for one in path if one not in covered]
        before = path[: len(path) - len(new)]
        if any(nodes[one].is_user for one in new) or not before:
            covered |= dict.fromkeys(new, len(paths))
            paths.append(path)
            firsts.append(new[0])
            beside.append({})
        else:
            line = covered[before[-1]]
            covered |= dict.fromkeys(new, line)
            beside[line].setdefault(before[-1], []).extend(new)
    lines = zip(paths, firsts, beside, strict=True)
    return [MessageLine(path=path, leaves_at=first, beside=more) for path, first, more in lines]


def _list_leaves(nodes: Mapping[str, MessageNode]) -> list[str]:
    parents = {node.parent for node in nodes.values()}
    return [name for name in nodes if name not in parents]


def _trace(nodes: Mapping[str, MessageNode], leaf: str) -> list[str]:
    path: dict[str, None] = {}
    name: str | None = leaf
    while name is not None and name in nodes and name not in path:
        path[name] = None
        name = nodes[name].parent
    return list(reversed(path))
