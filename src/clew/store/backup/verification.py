"""Whether a file is a whole store, as far as can be told without the store that it is a copy of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.errors import StoreDamaged
from clew.store.checks import pages
from clew.store.checks.catalogue import CHECKS
from clew.store.migrate import missing
from clew.store.sqlite.integrity import dangling

if TYPE_CHECKING:
    from clew.store.contract import Tx
    from clew.store.copying.copy import Tell
    from clew.store.direct import Direct

#: Complaints that are told.
_TOLD = 3


def verify(file: Direct, *, tell: Tell) -> list[str]:
    """
    Return if the file can be restored: what ``clew fsck --repair`` would repair in it.

    Looks at every page, index, reference and row, with every check that ``clew fsck`` has.

    :raises StoreDamaged: if something in it is not as it was written, or nothing can surely be done
        about it; says what
    """
    return file.read(_verify, file.name, tell)


def _verify(t: Tx, name: str, tell: Tell) -> list[str]:
    tell(f"verifying {name}", 0, 0)
    _refuse([found.detail for found in pages.look(t)])
    _refuse(dangling(t))
    # The checks are about the schema of this version.
    return [] if missing(t, "sqlite") else _findings(t, name, tell)


def _findings(t: Tx, name: str, tell: Tell) -> list[str]:
    hopeless: list[str] = []
    curable: list[str] = []
    for number, check in enumerate(CHECKS):
        tell(f"verifying {name}", number, len(CHECKS))
        for found in check.look(t):
            (hopeless if check.remedy(found) is None else curable).append(found.detail)
    _refuse(hopeless)
    return curable


def _refuse(found: list[str]) -> None:
    if found:
        more = f" and {len(found) - _TOLD} more" if len(found) > _TOLD else ""
        raise StoreDamaged(f"{'; '.join(found[:_TOLD])}{more}")
