"""Turns over HTTP: what Clew adds, against the bare skeleton, with an instant model beside both."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from bench.figures import Figure, percentile
from bench.places import postgres_database, scratch

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

#: Exchanges before the measured one: 40 and 400 messages of context.
SHORT, LONG = 20, 200
CLEW = str(Path(sys.executable).with_name("clew"))


async def measure() -> list[Figure]:
    return await asyncio.to_thread(_measure, None)


async def measure_postgres() -> list[Figure]:
    with postgres_database() as url:
        return await asyncio.to_thread(_measure, url)


def _measure(store: str | None) -> list[Figure]:
    where = "SQLite" if store is None else "PostgreSQL"
    with provider() as asked, scratch() as folder:
        with _skeleton(folder, asked) as port:
            bare = _Times.take(port, "s")
        with serve(folder, asked, store) as server:
            ours = _Times.take(server.port, "c")
            rate = at_once(server.port, "r")
            memory = [rss(server.process.pid)]
            talk(server.port, "m", 1000 - server.turns)
            memory.append(rss(server.process.pid))
        figures = [*_compared(where, ours, bare, slow=store is not None)]
        figures.append(
            Figure(
                name=f"turns, 8 at once, {where}",
                value=rate,
                unit="/s",
                target=80 if store is None else None,
                at_least=True,
            )
        )
        if store is None:
            figures += [
                Figure(name="memory, warmed", value=memory[0], unit="MB", target=110),
                Figure(name="memory, after 1,000 turns", value=memory[1], unit="MB", target=130),
                *_starts(folder, asked),
            ]
    return figures


@dataclass(frozen=True, kw_only=True, slots=True)
class _Times:
    """Milliseconds of measured turns."""

    plain: Sequence[float]
    streamed: Sequence[float]
    long: Sequence[float]

    @classmethod
    def take(cls, port: int, prefix: str) -> _Times:
        plain: list[float] = []
        streamed: list[float] = []
        for number in range(15):
            name = f"{prefix}{number}"
            talk(port, name, SHORT - 2)
            plain += [turn(port, name)]
            streamed += [turn(port, name, stream=True)]
        talk(port, f"{prefix}-long", LONG)
        long = [turn(port, f"{prefix}-long") for _ in range(15)]
        return cls(plain=plain, streamed=streamed, long=long)


def _compared(where: str, ours: _Times, bare: _Times, *, slow: bool) -> Generator[Figure]:
    rows = (
        ("a turn, 40 messages of context", ours.plain, bare.plain, (20, 50) if slow else (12, 25)),
        ("the same, streamed", ours.streamed, bare.streamed, None if slow else (18, 35)),
        ("a turn, 400 messages of context", ours.long, bare.long, None if slow else (18, None)),
    )
    for name, mine, theirs, targets in rows:
        for share, label, target in zip(
            (0.5, 0.95), ("p50", "p95"), targets or (None, None), strict=True
        ):
            baseline = percentile(theirs, share)
            yield Figure(
                name=f"{name}, {label}, {where}",
                value=percentile(mine, share),
                unit="ms",
                target=target,
                ratio=percentile(mine, share) / baseline,
                baseline=f"skeleton ({baseline:.1f} ms)",
            )


def turn(port: int, name: str, *, stream: bool = False, text: str | None = None) -> float:
    """Return the milliseconds of one turn over HTTP."""
    connection = _connections(port)
    said = [{"role": "user", "content": text or _TEXT}]
    body = json.dumps({"model": "clew", "stream": stream, "messages": said})
    started = time.perf_counter()
    headers = {"Content-Type": "application/json", "X-Clew-Conversation": name}
    connection.request("POST", "/v1/chat/completions", body, headers)
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{answer.status}: {content[:300]!r}")
    return (time.perf_counter() - started) * 1000


#: Twenty words, so that the echo comes in twenty pieces.
_TEXT = " ".join(f"word{number}" for number in range(20))
_LOCAL = threading.local()


def _connections(port: int) -> http.client.HTTPConnection:
    known: dict[int, http.client.HTTPConnection] = _LOCAL.__dict__.setdefault("by_port", {})
    if port not in known:
        known[port] = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        known[port].connect()
        known[port].sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return known[port]


def talk(port: int, name: str, turns: int) -> None:
    """Take so many turns in one conversation."""
    for _ in range(turns):
        turn(port, name)


def at_once(port: int, prefix: str, *, clients: int = 8, turns: int = 40) -> float:
    """Return the turns per second of several clients at once."""
    threads = [
        threading.Thread(target=talk, args=(port, f"{prefix}{number}", turns))
        for number in range(clients)
    ]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return clients * turns / (time.perf_counter() - started)


@dataclass(kw_only=True, slots=True)
class Server:
    """A gateway that runs."""

    process: subprocess.Popen[str]
    port: int
    #: Seconds from exec to the ready line.
    ready: float
    turns: int = 0


@contextmanager
def serve(
    folder: Path,
    provider: str,
    store: str | None,
    *,
    more: Sequence[str] = (),
    errors: IO[str] | None = None,
    program: str = CLEW,
) -> Generator[Server]:
    """``clew serve`` with a home in the folder; ``more``: settings; ``errors`` takes its log."""
    command = [
        program,
        "--home",
        str(folder / "home"),
        "--set",
        "model.name=openai-chat:fake-model",
    ]
    command += ["--set", f"model.base_url={provider}", "--set", "api.port=0"]
    if store is not None:
        command += ["--set", f"store.url={store}"]
    for setting in more:
        command += ["--set", setting]
    started = time.perf_counter()
    with subprocess.Popen(
        [*command, "serve"], stdout=subprocess.PIPE, stderr=errors or subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        ready = time.perf_counter() - started
        found = re.search(r":(\d+)\s*$", line)
        assert found, line
        try:
            yield Server(process=process, port=int(found[1]), ready=ready)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            process.wait(20)


def _starts(folder: Path, provider: str) -> Generator[Figure]:
    ready: list[float] = []
    models: list[float] = []
    first: list[float] = []
    for number in range(5):
        started = time.perf_counter()
        with serve(folder, provider, None) as server:
            ready.append(server.ready)
            for path in ("/healthz", "/v1/models"):
                get(server.port, path)
            models.append(time.perf_counter() - started)
            turn(server.port, f"start{number}")
            first.append(time.perf_counter() - started)
    yield Figure(name="ready after exec", value=percentile(ready, 0.5), unit="s", target=0.5)
    yield Figure(
        name="health and models answered after exec",
        value=percentile(models, 0.5),
        unit="s",
        target=0.5,
    )
    yield Figure(name="first answer after exec", value=percentile(first, 0.5), unit="s", target=1.5)
    versions: list[float] = []
    for _ in range(10):
        started = time.perf_counter()
        subprocess.run([CLEW, "--version"], check=True, stdout=subprocess.DEVNULL)
        versions.append(time.perf_counter() - started)
    yield Figure(name="clew --version", value=percentile(versions, 0.5), unit="s", target=0.1)


def get(port: int, path: str) -> None:
    """Make a request that must succeed."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    assert connection.getresponse().status == 200
    connection.close()


def rss(pid: int) -> float:
    """Resident memory in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found
    return int(found[1]) / 1024


@contextmanager
def provider(script: str = "echo") -> Generator[str]:
    """Run the fake provider as a process of its own, and yield its base URL."""
    command = [sys.executable, "-m", "clew.testing.provider", "--port", "0", "--script", script]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        found = re.search(r"http://[^\s/]+", process.stdout.readline())
        assert found
        try:
            yield f"{found[0]}/v1"
        finally:
            process.kill()


@contextmanager
def _skeleton(folder: Path, provider: str) -> Generator[int]:
    port = _free_port()
    command = [sys.executable, "-m", "bench.skeleton", "--db", str(folder / "skeleton.db")]
    command += ["--provider", provider, "--port", str(port)]
    with subprocess.Popen(command, env=dict(os.environ)) as process:
        try:
            _wait_for(port)
            yield port
        finally:
            process.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for(port: int) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"nothing listens on port {port}")
