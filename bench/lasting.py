"""Cost of a long life: a turn at the end of a long log, and recovery after a kill."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import signal
import socket
import threading
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import apsw

from bench.figures import Figure, percentile
from bench.places import scratch
from bench.turns import CLEW, provider, serve, turn
from clew.core.ids import ConversationId, IdGenerator, OwnerId, new_session_id
from clew.core.session import Head
from clew.core.session_base import EntryRange
from clew.store.opening import open_store
from clew.store.sqlite.driver import new_cursor
from clew.store.transactions import leases
from clew.store.transactions.sessions import get_head, rotate_session

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from clew.store.contract import Tx

#: Entries of the short and of the long log; the context of both is the last ``FEW``.
FEW, MANY = 10, 10_000
TURNS = 60
KILLS = 7
IDS = IdGenerator(lambda: time.time_ns() // 1_000_000)

_COPY = """
INSERT INTO entry (conversation_id, seq, id, session_id, turn_id, kind, role, text, calls, answers,
  format, message, created_at, prev_hash, hash)
WITH RECURSIVE block (number) AS (
  SELECT 1 UNION ALL SELECT number + 1 FROM block WHERE number < ?2 / ?3 - 1)
SELECT conversation_id, seq + number * ?3, id || '_' || number, session_id, turn_id, kind, role,
  text, calls, answers, format, message, created_at, prev_hash, hash
FROM block, entry WHERE conversation_id = ?1 ORDER BY number, seq
"""


async def measure_log() -> list[Figure]:
    """Measure a turn with the same context at ``MANY`` entries and at ``FEW``."""
    return await asyncio.to_thread(_compare_logs)


def _compare_logs() -> list[Figure]:
    names = {FEW: "short", MANY: "long"}
    times: dict[int, list[float]] = {FEW: [], MANY: []}
    with provider() as asked, scratch() as folder:
        with serve(folder, asked, None) as server:
            found = {count: _begin(server.port, name) for count, name in names.items()}
        asyncio.run(lengthen_and_rotate(folder / "home", found))
        with serve(folder, asked, None) as server:
            for count, name in [*names.items()] * TURNS:
                times[count].append(turn(server.port, name))
    few, many = (percentile(times[count], 0.5) for count in (FEW, MANY))
    return [
        Figure(
            name=f"a turn at {MANY:,} entries against one at {FEW}, the same context",
            value=many / few,
            unit="x",
            target=1.2,
        ),
        Figure(name=f"a turn at {MANY:,} entries, p50", value=many, unit="ms"),
    ]


def _begin(port: int, name: str) -> ConversationId:
    for _ in range(FEW // 2):
        turn(port, name)
    return find_conversation(port, name)


def find_conversation(port: int, name: str) -> ConversationId:
    """Return the id of a conversation."""
    return ConversationId(_get(port, f"/api/conversations/{name}")["id"])


async def lengthen_and_rotate(home: Path, conversations: dict[int, ConversationId]) -> None:
    """Repeat what was said, and rotate each to a context of its last entries."""
    with closing(apsw.Connection(str(home / "clew.db"))) as connection:
        new_cursor(connection).execute(_COPY, (conversations[MANY], MANY, FEW))
    async with await open_store(f"sqlite:///{home}/clew.db", home=home) as store:
        for count, conversation in conversations.items():
            await store.write(_rotate, conversation, count)


def lengthened(file: Path, conversation: str, *, few: int, many: int) -> None:
    """Repeat the ``few`` entries of a conversation until it has ``many``, while nobody uses it."""
    with closing(apsw.Connection(str(file))) as connection:
        new_cursor(connection).execute(_COPY, (conversation, many, few))
        update = "UPDATE lease SET last_seq = ?2 WHERE conversation_id = ?1"
        new_cursor(connection).execute(update, (conversation, many))


def _rotate(t: Tx, conversation: ConversationId, count: int) -> None:
    t.execute("UPDATE lease SET last_seq = $2 WHERE conversation_id = $1", conversation, count)
    lease = leases.acquire_lease(t, conversation, owner=OwnerId("own_bench")).lease
    rotate_session(
        t,
        lease,
        operation=IDS.new_operation_id(),
        expected=Head(session=get_head(t, conversation).id, last_seq=count),
        base=(EntryRange(first=count - FEW + 1, last=count),),
        reason="compression",
        session_ids=new_session_id,
    )
    leases.release_lease(t, lease)


async def measure_resume() -> list[Figure]:
    """From exec, and from ready, to the answer of a turn whose process was killed."""
    return await asyncio.to_thread(_resume)


def _resume() -> list[Figure]:
    after_exec: list[float] = []
    after_ready: list[float] = []
    with provider() as asked, scratch() as folder:
        for number in range(KILLS):
            name = f"killed{number}"
            kill_in_a_request(folder, name)
            started = time.perf_counter()
            with serve(folder, asked, None) as server:
                wait_until_answered(server.port, name)
                after_exec.append(time.perf_counter() - started)
                after_ready.append(after_exec[-1] - server.ready)
    return [
        Figure(
            name="a killed turn is answered, after exec",
            value=percentile(after_exec, 0.5),
            unit="s",
            target=2,
        ),
        Figure(
            name="the same, after ready, the slowest",
            value=max(after_ready),
            unit="s",
            target=2,
        ),
    ]


def kill_in_a_request(folder: Path, name: str, *, program: str = CLEW) -> None:
    """Measure a turn whose process is killed while the provider is silent."""
    with _silence() as (url, asked), serve(folder, url, None, program=program) as server:
        threading.Thread(target=_ask, args=(server.port, name), daemon=True).start()
        assert asked.wait(30)
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait(10)


def _ask(port: int, name: str) -> None:
    with contextlib.suppress(http.client.HTTPException, OSError):  # it is killed
        turn(port, name)


@contextmanager
def _silence() -> Generator[tuple[str, threading.Event]]:
    """Run a provider that never answers, and an event that is set by the first request."""
    asked = threading.Event()
    kept: list[socket.socket] = []

    def listen() -> None:
        while True:
            try:
                taken, _ = listener.accept()
            except OSError:
                return
            kept.append(taken)
            if taken.recv(1):
                asked.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=listen, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1", asked
        listener.shutdown(socket.SHUT_RDWR)
    for taken in kept:
        taken.close()


def wait_until_answered(port: int, name: str) -> None:
    """Wait for the first answer of a conversation."""
    while True:
        entries = _get(port, f"/api/conversations/{name}/entries")["items"]
        if any(entry["role"] == "assistant" for entry in entries):
            return
        time.sleep(0.005)


def _get(port: int, path: str) -> dict[str, Any]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())
