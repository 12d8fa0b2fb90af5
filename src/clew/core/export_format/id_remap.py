"""Remapping of ids: an exported conversation as a copy, where its ids are taken."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

from clew.core.entry import GENESIS, chain_hash
from clew.core.export_format.schema import ENTRY

if TYPE_CHECKING:
    from clew.core.export_format.schema import ExportRecord

_PREFIXED: Final = re.compile(r"([a-z]+_)([0-9a-f]{12})?.*", re.DOTALL)
_SESSION: Final = re.compile(r"(\d{8}_\d{6}_)[0-9a-f]{6}")
#: The fields of a record that hold ids of things in the conversation.
_IDS: Final = ("session", "turn", "input", "predecessor", "head")


class IdRemapper:
    """
    Mapping of a conversation's records to new ids, with a new hash chain.

    The same ``source``, ``mark`` and records always give the same copy, so that a repeated
    import of a longer export recognises what it has. Records must come in file order.
    """

    def __init__(self, source: str, *, mark: bytes, origin_seq: int) -> None:
        self._source, self._salt, self._origin_seq = source, source.encode() + mark, origin_seq
        self.id = self._map_id(source)
        self._last_hash = GENESIS

    def copy_record(self, kind: str, record: ExportRecord) -> ExportRecord:
        """Return the copy of one record."""
        copied = dict(record)
        if kind == "blob":
            return copied | {"conversation": self.id}
        for name in _IDS:
            if copied.get(name) is not None:
                copied[name] = self._map_id(copied[name])
        if kind == "conversation":
            return copied | {
                "id": self.id,
                "origin": self._source,
                "origin_seq": self._origin_seq,
                "routes": "[]",
            }
        copied["conversation"] = self.id
        if "id" in copied:
            copied["id"] = self._map_id(copied["id"])
        return self._finish_record(kind, copied)

    def _finish_record(self, kind: str, copied: ExportRecord) -> ExportRecord:
        match kind:
            case "session":
                operation = copied["operation"]
                first = operation == self._source
                copied["operation"] = self.id if first else f"op_{self._hash_id(operation)}"
            case "input":
                # The owner of the original runs its plugins' finalisation.
                copied["expiry_finalized"] = 1
            case "entry":
                copied["prev_hash"] = self._last_hash
                self._last_hash = copied["hash"] = compute_entry_hash(copied)
            case _:
                pass
        return copied

    def _map_id(self, old: str) -> str:
        if session := _SESSION.fullmatch(old):
            return session[1] + self._hash_id(old)[:6]
        prefixed = _PREFIXED.fullmatch(old)
        if prefixed is None:
            return f"id_{self._hash_id(old)}"
        # An entry and the input that it came from keep the same suffix.
        rest = self._hash_id(old.removeprefix(prefixed[1]))
        return f"{prefixed[1]}{prefixed[2] or rest[16:28]}{rest[:16]}"

    def _hash_id(self, old: str) -> str:
        return hashlib.sha256(self._salt + b"\0" + old.encode()).hexdigest()


def compute_entry_hash(entry: ExportRecord) -> bytes:
    """Return the correct hash of an entry, from its fields and the previous hash."""
    fields = (entry[field.name] for field in ENTRY[:-2])
    return chain_hash(entry["prev_hash"], tuple(fields))
