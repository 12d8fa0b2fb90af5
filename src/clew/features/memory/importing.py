"""Facts from Markdown files, as Clew and other programs write them."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from clew.errors import UsageError
from clew.features.memory import facts, writing
from clew.features.memory.facts import FactState, FactWriter
from clew.features.memory.markdown import read_bullets

if TYPE_CHECKING:
    from clew.core.scope import Scope
    from clew.features.memory.markdown import Bullet
    from clew.store.contract import Tx


@dataclass(kw_only=True)
class ImportedFacts:
    """Result of importing the bullets of a file."""

    added: int = 0
    changed: int = 0
    known: int = 0
    #: Sentences about bullets that were left out.
    problems: list[str] = field(default_factory=list[str])

    def as_dict(self) -> dict[str, Any]:
        """Return it as programs get it."""
        return asdict(self)


def import_markdown(t: Tx, text: str, scope: Scope) -> ImportedFacts:
    """Remember each bullet; importing the same file again adds nothing."""
    done = ImportedFacts()
    for bullet in read_bullets(text):
        try:
            _import_bullet(t, bullet, scope, done)
        except UsageError as error:
            done.problems.append(f"left out: {bullet.text[:60]}: {error}")
    return done


def _import_bullet(t: Tx, bullet: Bullet, scope: Scope, done: ImportedFacts) -> None:
    known = None if bullet.id is None else facts.find_fact(t, bullet.id)
    if known is not None and known.scope == scope and known.state is FactState.ACTIVE:
        if known.text == writing.clean_text(bullet.text):
            done.known += 1
            return
        writing.edit(t, known, bullet.text, written_by=FactWriter.PERSON)
        done.changed += 1
        return
    digest = hashlib.sha256(f"{scope}\n{bullet.text}".encode()).hexdigest()
    name = f"mem_{digest[:20]}"
    is_new = facts.find_fact(t, name) is None
    given = writing.NewFact(id=name, scope=scope, text=bullet.text, written_by=FactWriter.IMPORT)
    if writing.remember(t, given).id == name and is_new:
        done.added += 1
    else:
        done.known += 1
