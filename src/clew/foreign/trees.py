"""Logs whose records name their parents, so that they hold branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class TreeNode(Record):
    """A record by its place in the log; without an id it belongs to what is around it."""

    id: str = ""
    #: Id of its parent; ``None``: it is a root.
    parent: str | None = None
    #: Never the end of the main path: a side conversation.
    is_aside: bool = False


class TreePath(Record):
    """The places of one path, in the order of the log."""

    places: Sequence[int]
    #: Id of the first record that is only on this path; empty for the main path.
    origin: str = ""


def split_paths(
    nodes: Sequence[TreeNode], is_fork: Callable[[set[int], Sequence[int]], bool]
) -> list[TreePath]:
    """
    Return the main path, which ends with the newest record, and the other ones that are forks.

    :param is_fork: whether places that are new, after a path, make a branch; if not, they become
        part of the main path. A parent that is missing, or stands later, is taken to be the
        record before.
    """
    parents = _link(nodes)
    leaves = _find_leaves(parents)
    if not leaves:
        return [TreePath(places=range(len(nodes)))]
    main = next((leaf for leaf in leaves if not nodes[leaf].is_aside), leaves[0])
    path = _climb(main, parents)
    placed, rest, forks = set(path), set[int](), list[TreePath]()
    for leaf in sorted(leaves):
        climbed = _climb(leaf, parents)
        new = [place for place in climbed if place not in placed]
        if not new:
            continue
        placed.update(new)
        if is_fork(set(path), new):
            forks.append(TreePath(places=climbed, origin=nodes[new[0]].id))
        else:
            rest.update(new)
    loose = {place for place in range(len(nodes)) if place not in placed}
    return [TreePath(places=sorted({*path, *rest, *loose})), *forks]


def _link(nodes: Sequence[TreeNode]) -> dict[int, int | None]:
    """Return the place of the parent of each record that has an id; parents come first."""
    parents: dict[int, int | None] = {}
    by_id: dict[str, int] = {}
    before: int | None = None
    for place, node in enumerate(nodes):
        if not node.id:
            continue
        parents[place] = None if node.parent is None else by_id.get(node.parent, before)
        by_id[node.id] = before = place
    return parents


def _find_leaves(parents: dict[int, int | None]) -> list[int]:
    inner = set(parents.values())
    return sorted((place for place in parents if place not in inner), reverse=True)


def _climb(leaf: int, parents: dict[int, int | None]) -> list[int]:
    path: list[int] = []
    place: int | None = leaf
    while place is not None:
        path.append(place)
        place = parents[place]
    return path[::-1]
