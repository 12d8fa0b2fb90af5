"""
Merging of files into facts: three ways, by the ids in comments.

The first way is what the gateway last wrote, the second the file as an operator left it, the third
the facts as they are. Where a fact was changed as well, it stays, and the file says so.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew.errors import UsageError
from clew.features.memory import facts, forgetting, writing
from clew.features.memory.facts import FactState, FactWriter
from clew.features.memory.markdown import read_bullets, write_markdown
from clew.features.memory.secret_detector import find_secret
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clew.core.scope import Scope
    from clew.features.memory.facts import Fact
    from clew.features.memory.forgetting import Forgotten
    from clew.features.memory.markdown import Bullet
    from clew.store.contract import Tx

#: From a file with more facts, not all lines can be removed at once.
_MANY = 1


class WrittenFile(Record):
    """Content that was last written into the file of a scope."""

    version: int
    digest: str
    mtime: int
    #: By id: the hash of the text, and the version.
    facts: Mapping[str, tuple[str, int]]


@dataclass(kw_only=True)
class MergedFile:
    """Result of a merge."""

    #: Sentences for the file.
    remarks: list[str] = field(default_factory=list[str])
    forgotten: list[Forgotten] = field(default_factory=list["Forgotten"])


class FileContent(Record):
    """Content that a file is to have."""

    version: int
    text: str
    facts: Mapping[str, tuple[str, int]]


def list_scopes(t: Tx) -> dict[Scope, tuple[int, WrittenFile | None]]:
    """Return the version of each scope, and what was last written of it."""
    rows = t.fetch_all(
        """
        SELECT s.scope, s.version, f.version, f.digest, f.mtime, f.facts FROM memory_scope s
        LEFT JOIN memory_file f ON f.scope = s.scope ORDER BY 1
        """
    )
    return {scope: (version, _make_written(*rest)) for scope, version, *rest in rows}


def _make_written(
    version: int | None, digest: str | None, mtime: int | None, known: str | None
) -> WrittenFile | None:
    if version is None or digest is None or mtime is None or known is None:
        return None
    found: dict[str, Any] = json.loads(known)
    return WrittenFile(
        version=version,
        digest=digest,
        mtime=mtime,
        facts={name: (one[0], one[1]) for name, one in found.items()},
    )


def make_content(t: Tx, scope: Scope, remarks: Sequence[str] = ()) -> FileContent:
    """Return what the file of a scope is to have."""
    found = facts.list_active(t, scope)
    version: int | None = t.fetch_value("SELECT version FROM memory_scope WHERE scope = $1", scope)
    # Nothing in a remark ends its comment.
    lines = [f"<!-- {one.replace('--', '- -')} -->" for one in remarks]
    return FileContent(
        version=version or 0,
        text="\n".join([write_markdown(scope, found), *lines, ""])
        if lines
        else write_markdown(scope, found),
        facts={one.id: (hash_text(one.text or ""), one.version) for one in found},
    )


def store_written(t: Tx, scope: Scope, content: FileContent, mtime: int) -> None:
    """Record what was written."""
    t.execute(
        """
        INSERT INTO memory_file (scope, version, digest, mtime, facts) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (scope) DO UPDATE SET version = excluded.version, digest = excluded.digest,
            mtime = excluded.mtime, facts = excluded.facts
        """,
        scope,
        content.version,
        hash_text(content.text),
        mtime,
        json.dumps(content.facts),
    )


def hash_text(text: str) -> str:
    """Return the hash by which a text is known to be the same."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def merge_file(
    t: Tx, scope: Scope, text: str, written: WrittenFile | None, new_id: Callable[[], str]
) -> MergedFile:
    """Make the changes of a file; doing it again changes nothing more."""
    writing.lock_scope(t, scope)
    before: Mapping[str, tuple[str, int]] = {} if written is None else written.facts
    done = MergedFile()
    bullets = list(read_bullets(text))
    for bullet in bullets:
        try:
            _merge_bullet(t, scope, bullet, before, done, new_id)
        except UsageError as error:
            secret = find_secret(bullet.text) is not None
            done.remarks.append(f"left out: {error}" + ("" if secret else f": {bullet.text}"))
    _remove_missing(t, bullets, before, done)
    return done


def _merge_bullet(
    t: Tx,
    scope: Scope,
    bullet: Bullet,
    before: Mapping[str, tuple[str, int]],
    done: MergedFile,
    new_id: Callable[[], str],
) -> None:
    text = writing.clean_text(bullet.text)
    if bullet.id is None:
        given = writing.NewFact(id=new_id(), scope=scope, text=text, written_by=FactWriter.PERSON)
        writing.remember(t, given)
        return
    known = facts.find_fact(t, bullet.id)
    was = before.get(bullet.id)
    if known is None or known.scope != scope:
        done.remarks.append(f"left out, its id is not of a fact here: {text}")
    elif text != known.text and (was is None or was[0] != hash_text(text)):
        _change_fact(t, known, text, was, done)


def _change_fact(
    t: Tx, known: Fact, text: str, was: tuple[str, int] | None, done: MergedFile
) -> None:
    if known.state is not FactState.ACTIVE:
        done.remarks.append(f"left out, the fact is {known.state.value}: {text}")
    elif was is None or was[1] != known.version:
        done.remarks.append(
            f"fact {known.number} was changed meanwhile and stays; you wrote: {text}"
        )
    else:
        writing.edit(t, known, text, written_by=FactWriter.PERSON)


def _remove_missing(
    t: Tx, bullets: Sequence[Bullet], before: Mapping[str, tuple[str, int]], done: MergedFile
) -> None:
    """Forget the facts whose lines were removed."""
    left = {one.id for one in bullets}
    # A line that has lost its comment is still there.
    texts = {writing.make_text_key(one.text) for one in bullets if one.id is None}
    gone = [name for name in before if name not in left]
    if len(gone) == len(before) > _MANY:
        done.remarks.append("nothing was forgotten, because no fact was left in this file")
        return
    for name in gone:
        known = facts.find_fact(t, name)
        if known is None or known.state is not FactState.ACTIVE or known.text_key in texts:
            continue
        if known.version != before[name][1]:
            done.remarks.append(f"fact {known.number} was changed meanwhile and stays")
        else:
            done.forgotten.append(forgetting.forget(t, known, written_by=FactWriter.PERSON))
