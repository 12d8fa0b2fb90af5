"""Verification that a file is a complete store, without access to its original."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.errors import StoreDamaged
from clew.store.checks import pages
from clew.store.checks.registry import CHECKS
from clew.store.migrate import find_pending_migrations
from clew.store.sqlite.integrity import find_dangling_references

if TYPE_CHECKING:
    from clew.store.contract import Tx
    from clew.store.copying.copy import ProgressCallback
    from clew.store.sync_store import SyncStore

#: Problems that are reported.
_MAX_REPORTED = 3


def verify_store_file(file: SyncStore, *, tell: ProgressCallback) -> list[str]:
    """
    Verify that a file can be restored; return what could be repaired in it.

    Checks every page, index, reference and row, with every check of ``clew fsck``.

    :raises StoreDamaged: if the file is damaged or has a violation without a safe repair
    """
    return file.read(_verify_snapshot, file.name, tell)


def _verify_snapshot(t: Tx, name: str, tell: ProgressCallback) -> list[str]:
    tell(f"verifying {name}", 0, 0)
    _raise_if_any([found.detail for found in pages.find_damaged_pages(t)])
    _raise_if_any(find_dangling_references(t))
    # The checks apply to the schema of this version only.
    return [] if find_pending_migrations(t) else _run_checks(t, name, tell)


def _run_checks(t: Tx, name: str, tell: ProgressCallback) -> list[str]:
    hopeless: list[str] = []
    curable: list[str] = []
    for number, check in enumerate(CHECKS):
        tell(f"verifying {name}", number, len(CHECKS))
        for found in check.find(t):
            (hopeless if check.describe_repair(found) is None else curable).append(found.detail)
    _raise_if_any(hopeless)
    return curable


def _raise_if_any(found: list[str]) -> None:
    if found:
        more = f" and {len(found) - _MAX_REPORTED} more" if len(found) > _MAX_REPORTED else ""
        raise StoreDamaged(f"{'; '.join(found[:_MAX_REPORTED])}{more}")
