"""Copies: a conversation of an export under ids of its own, where its own ids cannot be kept."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

from clew.core.entry import GENESIS, chain_hash
from clew.core.exported.shapes import ENTRY

if TYPE_CHECKING:
    from clew.core.exported.shapes import Record

_PREFIXED: Final = re.compile(r"([a-z]+_)([0-9a-f]{12})?.*", re.DOTALL)
_SESSION: Final = re.compile(r"(\d{8}_\d{6}_)[0-9a-f]{6}")
#: The fields of a record that hold ids of things in the conversation.
_IDS: Final = ("session", "turn", "input", "predecessor", "head")


class Copy:
    """
    Gives every record of a conversation new ids and its entries a chain of their own.

    The same ``source``, ``mark`` and records give the same copy each time: what was copied before
    is known again, also when the export has grown. Records have to come in the order of their file.
    """

    def __init__(self, source: str, *, mark: bytes, origin_seq: int) -> None:
        self._source, self._salt, self._origin_seq = source, source.encode() + mark, origin_seq
        self.id = self._new(source)
        self._last_hash = GENESIS

    def of(self, kind: str, record: Record) -> Record:
        """The copy of one record."""
        copied = dict(record)
        if kind == "blob":
            return copied | {"conversation": self.id}
        for name in _IDS:
            if copied.get(name) is not None:
                copied[name] = self._new(copied[name])
        if kind == "conversation":
            return copied | {
                "id": self.id,
                "origin": self._source,
                "origin_seq": self._origin_seq,
                "routes": "[]",
            }
        copied["conversation"] = self.id
        if "id" in copied:
            copied["id"] = self._new(copied["id"])
        return self._finished(kind, copied)

    def _finished(self, kind: str, copied: Record) -> Record:
        match kind:
            case "session":
                operation = copied["operation"]
                first = operation == self._source
                copied["operation"] = self.id if first else f"op_{self._digest(operation)}"
            case "input":
                # Whoever has the original tells its plugins.
                copied["expiry_finalized"] = 1
            case "entry":
                copied["prev_hash"] = self._last_hash
                self._last_hash = copied["hash"] = entry_hash(copied)
            case _:
                pass
        return copied

    def _new(self, old: str) -> str:
        if session := _SESSION.fullmatch(old):
            return session[1] + self._digest(old)[:6]
        prefixed = _PREFIXED.fullmatch(old)
        if prefixed is None:
            return f"id_{self._digest(old)}"
        # An entry and the input that it came from keep the same rest.
        rest = self._digest(old.removeprefix(prefixed[1]))
        return f"{prefixed[1]}{prefixed[2] or rest[16:28]}{rest[:16]}"

    def _digest(self, old: str) -> str:
        return hashlib.sha256(self._salt + b"\0" + old.encode()).hexdigest()


def entry_hash(entry: Record) -> bytes:
    """The hash that an entry has to have, by its fields and the hash before it."""
    fields = (entry[field.name] for field in ENTRY[:-2])
    return chain_hash(entry["prev_hash"], tuple(fields))
