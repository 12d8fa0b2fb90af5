"""Read position: what of a server is stored; pure."""

from __future__ import annotations

import json
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Milliseconds within which changes of two channels, or of two servers, may arrive out of order.
OVERLAP: Final = 60_000
#: Maximum changes that are remembered of that time.
_MAX_RECENT: Final = 1000

Json = dict[str, Any]


class ReadPosition(Record):
    """The newest stored change, and the others that are about as new."""

    #: Milliseconds of the server.
    newest: int
    #: By the post's id: the time of its last stored change.
    recent: Mapping[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def from_json(cls, text: str) -> ReadPosition:
        return cls(**json.loads(text))

    def to_json(self) -> str:
        return json.dumps({"newest": self.newest, "recent": dict(self.recent)})

    @property
    def since(self) -> int:
        """Return the time from which changes may be missing."""
        return max(0, self.newest - OVERLAP)

    def has_stored(self, post: Json) -> bool:
        """Return whether a post is stored as it is now."""
        return self.recent.get(str(post.get("id")), -1) >= _get_change_time(post)

    def advance(self, posts: Sequence[Json]) -> ReadPosition:
        """Return the position after these posts were stored."""
        changes = {str(post.get("id")): _get_change_time(post) for post in posts}
        newest = max(self.newest, *changes.values())
        known = {**self.recent, **changes}
        recent = {name: at for name, at in known.items() if at >= newest - OVERLAP}
        return ReadPosition(newest=newest, recent=dict([*recent.items()][-_MAX_RECENT:]))


def _get_change_time(post: Json) -> int:
    return max(int(post.get(name) or 0) for name in ("create_at", "update_at", "delete_at"))
