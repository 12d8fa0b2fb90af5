"""Links: the accounts of one person on several platforms, which share the facts of the first."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from clew.clock import from_millis
from clew.core.forgotten_text import Redaction
from clew.core.ids import InboxId, new_session_id
from clew.core.scope import Scope
from clew.errors import UsageError
from clew.features.memory import facts, proposals, writing
from clew.features.memory.facts import FactWriter
from clew.record import Record
from clew.store.records import RecordQuery
from clew.store.transactions import redactions

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.ids import ConversationId
    from clew.store.contract import Tx

#: How long a code is valid, and how many wrong ones void all that are open.
CODE_LIFETIME: Final = timedelta(minutes=10)
MAX_TRIES: Final = 5
#: Without letters and digits that are easily confused.
_ALPHABET: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_PERSON: Final = "person:"
#: Begins the scope of what an agent remembers for itself; its name, and whose it is, follow.
_AGENT: Final = "agent:"


class AccountLink(Record):
    """An account that shares the facts of another one."""

    scope: Scope
    main: Scope
    linked_at: datetime


_LINKS: Final = RecordQuery(
    AccountLink, "SELECT scope, main, linked_at FROM memory_link", {"linked_at": from_millis}
)


def find_main(t: Tx, scope: Scope) -> Scope:
    """Return the scope whose facts a scope has: its own, or that of the account it is linked to."""
    if not scope.startswith(_PERSON):
        return scope
    found: Scope | None = t.fetch_value(
        "SELECT main FROM memory_link WHERE scope = $1 AND ended_at IS NULL", scope
    )
    return found or scope


def list_told(t: Tx, main: Scope, *, ended: bool) -> list[Scope]:
    """
    Return the scopes that are told the facts of one, with ``ended`` also those that were.

    What an agent remembers for itself is told in conversations of the same scopes.
    """
    main = find_owner(main)
    found: list[Scope] = t.fetch_column(
        "SELECT scope FROM memory_link WHERE main = $1 AND (ended_at IS NULL OR $2 = 1) ORDER BY 1",
        main,
        int(ended),
    )
    return [main, *found]


def list_links(t: Tx, *, limit: int) -> list[AccountLink]:
    """Return the accounts that are linked now, those of one person together."""
    return _LINKS.fetch_all(t, "WHERE ended_at IS NULL ORDER BY main, linked_at LIMIT $1", limit)


def name_own_memory(agent: str, owner: Scope) -> Scope:
    """Return the scope of what an agent remembers for itself in conversations of a scope."""
    return Scope(f"{_AGENT}{agent}:{owner}")


def find_owner(memory: Scope) -> Scope:
    """Return the scope of the conversations in which facts are told, whoever remembers them."""
    return Scope(memory.split(":", 2)[2]) if memory.startswith(_AGENT) else memory


def make_code(t: Tx, scope: Scope) -> str:
    """
    Return a new code with which another account can be linked to this one.

    :raises UsageError: if it is not the account of a person
    """
    _check_scope(scope)
    code = "".join(secrets.choice(_ALPHABET) for _ in range(8))
    t.execute(
        """
        INSERT INTO memory_link_code (scope, code, expires_at) VALUES ($1, $2, $3)
        ON CONFLICT (scope) DO UPDATE
        SET code = excluded.code, tries = 0, expires_at = excluded.expires_at
        """,
        find_main(t, scope),
        _hash_code(code),
        t.now + CODE_LIFETIME // timedelta(milliseconds=1),
    )
    return f"{code[:4]}-{code[4:]}"


def link(t: Tx, scope: Scope, code: str) -> Scope | None:
    """
    Link an account to the one that has this code; ``None`` if the code is not valid now.

    The facts of the account become facts of the other one.

    :raises UsageError: if it cannot be linked
    """
    _check_scope(scope)
    found = _use_code(t, code)
    if found is None:
        return None
    main = find_main(t, found)
    if main == scope:
        raise UsageError("this is the account that gave the code: send it from the other one")
    if find_main(t, scope) != scope or list_told(t, scope, ended=False) != [scope]:
        raise UsageError("this account is linked already: /unlink parts it")
    _move_facts(t, scope, main)
    for own in _list_own_memories(t, scope):
        _move_facts(t, own, Scope(own.removesuffix(scope) + main))
    t.execute(
        """
        INSERT INTO memory_link (scope, main, linked_at) VALUES ($1, $2, $3)
        ON CONFLICT (scope) DO UPDATE
        SET main = excluded.main, linked_at = excluded.linked_at, ended_at = NULL
        """,
        scope,
        main,
        t.now,
    )
    return main


def unlink(t: Tx, scope: Scope) -> list[Scope]:
    """Part an account from the others; return those that go on without its facts."""
    own = find_main(t, scope) == scope
    parted = list_told(t, scope, ended=False)[1:] if own else [scope]
    for one in parted:
        t.execute("UPDATE memory_link SET ended_at = $2 WHERE scope = $1", one, t.now)
    return parted


def queue_new_sessions(t: Tx, scope: Scope, main: Scope) -> list[ConversationId]:
    """Have the open conversations of a scope go on with the facts that it now has."""
    found: list[ConversationId] = t.fetch_column(
        """
        SELECT h.conversation_id FROM head h
        JOIN session s ON s.id = h.session_id AND s.ended_at IS NULL
        JOIN conversation c ON c.id = h.conversation_id AND c.deleting_at IS NULL
        WHERE c.scope = $1 AND s.instructions IS NOT NULL ORDER BY 1
        """,
        scope,
    )
    for conversation in found:
        name = hashlib.sha256(f"{conversation} {main} {t.now}".encode()).hexdigest()
        redactions.queue_redaction(
            t,
            conversation,
            Redaction(texts=()),
            id=InboxId(f"inb_{name[:28]}"),
            session_ids=new_session_id,
        )
    return found


def _check_scope(scope: Scope) -> None:
    if not scope.startswith(_PERSON):
        raise UsageError("accounts are linked in direct messages with the agent")


def _use_code(t: Tx, code: str) -> Scope | None:
    found: Scope | None = t.fetch_value(
        """
        DELETE FROM memory_link_code WHERE code = $1 AND expires_at > $2 AND tries < $3
        RETURNING scope
        """,
        _hash_code(code),
        t.now,
        MAX_TRIES,
    )
    if found is None:
        t.execute("UPDATE memory_link_code SET tries = tries + 1 WHERE expires_at > $1", t.now)
    return found


def _hash_code(code: str) -> str:
    return hashlib.sha256(code.upper().replace("-", "").strip().encode()).hexdigest()


def _list_own_memories(t: Tx, owner: Scope) -> list[Scope]:
    """Return the scopes of what agents remember for themselves in conversations of a scope."""
    found: list[Scope] = t.fetch_column(
        "SELECT scope FROM memory_scope WHERE scope LIKE $1 ORDER BY 1", f"{_AGENT}%"
    )
    return [one for one in found if find_owner(one) == owner]


def _move_facts(t: Tx, scope: Scope, main: Scope) -> None:
    """Make the facts of an account those of another."""
    for one in sorted((scope, main)):
        writing.lock_scope(t, one)
    for fact in facts.list_active(t, scope):
        assert fact.text is not None
        writing.remember(
            t,
            writing.NewFact(
                id=f"{fact.id}_{hashlib.sha256(main.encode()).hexdigest()[:6]}",
                scope=main,
                text=fact.text,
                kind=fact.kind,
                written_by=fact.written_by,
                source=None
                if fact.conversation is None
                else writing.FactSource(
                    conversation=fact.conversation, seq=fact.seq, hash=fact.source_hash
                ),
                pinned=bool(fact.pinned),
            ),
        )
        writing.forget(t, fact, written_by=FactWriter.PERSON)
    for proposal in proposals.list_waiting(t, scope):
        proposals.decline(t, proposal)
