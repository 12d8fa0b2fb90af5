"""
Store with a million messages, made of few random numbers: the same each time, and quickly made.

It is as the product would have left it, with every hash, turn and input in its place.

Words follow Zipf's law, as they do in talk; a tenth of the messages is Chinese; scopes are of very
different sizes. Rows go in below the store's transactions, the index through its own code.
"""

from __future__ import annotations

import itertools
import random
from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

import apsw

from bench.places import BUILD
from clew.core.entry import GENESIS, chain_hash
from clew.core.scope import LOCAL, Scope
from clew.store.maintenance import update_index
from clew.store.migrate import load_migrations
from clew.store.opening import open_store
from clew.store.sqlite.driver import new_cursor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

MESSAGES = 1_000_000
CONVERSATIONS = 5_000
#: The most of them are in the first scopes.
SCOPES = [LOCAL, *(Scope(f"person:telegram:dm:{number}") for number in range(1_000))]
_VERSION = 3
_WORDS, _HAN, _PIECES = 50_000, 3_000, 60_000
_SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in ("a", "e", "i", "o", "u", "an", "er", "is")]

Row = tuple[object, ...]


def vocabulary() -> list[str]:
    """Distinct words, the most common first."""
    chooser = random.Random(1)
    words: dict[str, None] = {}
    while len(words) < _WORDS:
        words["".join(chooser.choices(_SYLLABLES, k=1 + len(words).bit_length() // 5))] = None
    return list(words)


def han() -> list[str]:
    """Distinct Chinese characters, the most common first."""
    return random.Random(2).sample([chr(0x4E00 + n) for n in range(20_000)], _HAN)


def zipf(count: int) -> list[float]:
    """Weights of the first, second, … most common one, summed up."""
    return list(itertools.accumulate(1 / (rank + 1) for rank in range(count)))


def _pieces() -> tuple[list[str], list[str]]:
    # Messages are put together from pieces, which is quicker than from words.
    chooser = random.Random(3)
    words, signs = vocabulary(), han()
    latin = chooser.choices(words, cum_weights=zipf(_WORDS), k=_PIECES * 10)
    chinese = chooser.choices(signs, cum_weights=zipf(_HAN), k=_PIECES * 12)
    return (
        [" ".join(latin[at : at + 10]) + ".,?!:"[at % 5] for at in range(0, len(latin), 10)],
        ["".join(chinese[at : at + 12]) + "。" for at in range(0, len(chinese), 12)],
    )


def scope_of(conversation: int) -> Scope:
    # Half of the conversations are in ten scopes, the others in a thousand.
    return SCOPES[conversation % (10 if conversation % 2 else len(SCOPES))]


def messages(count: int) -> Iterator[tuple[int, int, str]]:
    """Yield number, conversation and text of each message."""
    chooser = random.Random(4)
    latin, chinese = _pieces()
    for n in range(1, count + 1):
        pieces = chooser.choices(chinese if n % 10 == 0 else latin, k=3)
        yield n, int(CONVERSATIONS * chooser.random() ** 2), " ".join(pieces)


class Log:
    """The entries of all messages: turns of four, with a tool call each; and what is theirs."""

    def __init__(self) -> None:
        self._seqs = [0] * CONVERSATIONS
        self._hashes = [GENESIS] * CONVERSATIONS

    def entries(self, count: int) -> Iterator[Row]:
        """Yield the rows of all messages, as ``ENTRY`` names the columns."""
        for n, conversation, text in messages(count):
            seq = self._seqs[conversation] = self._seqs[conversation] + 1
            role, calls, answers = _shape(seq)
            fields = (
                *(f"cnv_{conversation}", seq, f"ent_{n:012x}", f"ses_{conversation}"),
                *(_turn(conversation, seq), "message", role, text, calls, answers, "bench/1"),
                *(f'{{"content":"{text}"}}', 1_800_000_000_000 + n),
            )
            before = self._hashes[conversation]
            after = self._hashes[conversation] = chain_hash(before, fields)
            yield (n, *fields, before, after)

    def others(self) -> dict[str, Iterable[Row]]:
        """Per table and columns what belongs to the entries that were made."""
        numbers = range(CONVERSATIONS)
        return {
            "conversation (id, scope, created_at)": (
                (f"cnv_{number}", scope_of(number), 0) for number in numbers
            ),
            "session (id, conversation_id, opened_at, opened_by, opened_seq, operation)": (
                (f"ses_{number}", f"cnv_{number}", 0, "start", 0, f"cnv_{number}")
                for number in numbers
            ),
            "head (conversation_id, session_id)": (
                (f"cnv_{number}", f"ses_{number}") for number in numbers
            ),
            "lease (conversation_id, last_seq, updated_at)": (
                (f"cnv_{number}", self._seqs[number], 0) for number in numbers
            ),
            "turn (id, conversation_id, state, outcome, first_seq, steps, started_at,"
            " finished_at)": (
                (turn, f"cnv_{number}", *_outcome(left), first, min(left // 2, 2), 1, _end(left))
                for number, turn, first, left in self._turns()
            ),
            "inbox (id, conversation_id, kind, text, double_text, received_at, due_at, outcome,"
            " turn_id, resolved_at)": (
                (f"inb_{turn}", f"cnv_{number}", "message", "", "queue", 1, 1, "turn", turn, 1)
                for number, turn, _, _ in self._turns()
            ),
            "journal (turn_id, step, call_id, conversation_id, position, tool, args, effect,"
            " status, format, result, started_at, finished_at)": (
                (turn, 1, f"call_{first + 1}", f"cnv_{number}", 0, "look", "{}", "pure", "ok",
                 "bench/1", "{}", 1, 1)
                for number, turn, first, left in self._turns()
                if left > 2
            ),
        }  # fmt: skip

    def _turns(self) -> Iterator[tuple[int, str, int, int]]:
        """Conversation, id, first seq of each turn, and how many entries it has."""
        for number, last in enumerate(self._seqs):
            for first in range(1, last + 1, 4):
                yield number, _turn(number, first), first, min(last - first + 1, 4)


def _turn(conversation: int, seq: int) -> str:
    return f"trn_{conversation}_{(seq - 1) // 4}"


def _shape(seq: int) -> tuple[str, str, str]:
    """Role, calls and answers of an entry."""
    match seq % 4:
        case 1:
            return "user", "[]", "[]"
        case 2:
            return "assistant", f'["call_{seq}"]', "[]"
        case 3:
            return "tool", "[]", f'["call_{seq - 1}"]'
        case _:
            return "assistant", "[]", "[]"


def _outcome(entries: int) -> tuple[str, str | None]:
    return ("done", "answered") if entries == 4 else ("running", None)


def _end(entries: int) -> int | None:
    return 1 if entries == 4 else None


#: Columns of ``Log.entries``.
ENTRY = (
    "n, conversation_id, seq, id, session_id, turn_id, kind, role, text, calls, answers, format,"
    " message, created_at, prev_hash, hash"
)


async def sqlite_file() -> Path:
    """Return the file with all messages, indexed; the first call creates it."""
    BUILD.mkdir(parents=True, exist_ok=True)
    schema = load_migrations("sqlite")[-1].sha256
    path = BUILD / f"search-{_VERSION}-{schema[:12]}.db"
    if path.exists():
        return path
    for outdated in BUILD.glob("search-*"):
        outdated.unlink()
    new = path.with_suffix(".new")
    url = f"sqlite:///{new}"
    async with await open_store(url, home=BUILD):
        pass
    with closing(apsw.Connection(str(new))) as connection:
        _fill(connection)
    async with await open_store(url, home=BUILD) as store:
        await update_index(store)
    return new.rename(path)


def _fill(connection: apsw.Connection) -> None:
    execute = new_cursor(connection).execute
    execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; BEGIN")
    log = Log()
    insert_rows(connection, f"entry ({ENTRY})", log.entries(MESSAGES))
    for place, rows in log.others().items():
        insert_rows(connection, place, rows)
    execute("COMMIT")


def insert_rows(connection: apsw.Connection, place: str, rows: Iterable[Row]) -> None:
    rows = iter(rows)
    while some := list(itertools.islice(rows, 10_000)):
        values = ",".join("?" * len(some[0]))
        cast("Any", connection).executemany(f"INSERT INTO {place} VALUES ({values})", some)
