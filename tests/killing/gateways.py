"""Gateways under test: the API over a real store, each in a forked process with its own port."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from clew.api.server import serve_api
from clew.api.sockets import bind_sockets
from clew.engine.engine import Engine
from clew.store.opening import open_store
from clew.store.transactions.turns import StartedWork
from tests.killing import child, processes
from tests.killing.hosts import move_to
from tests.killing.killer import Killer, WatchedStore
from tests.killing.records import Killed, Ready, Started, Took

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from clew.config import Settings
    from tests.killing.child import Job


def main(job: Job, port: int) -> None:
    """Serve until SIGTERM. Clients reach it on our own host, whichever its own is."""
    child.write_to(job.folder)
    settings = child.make_settings(job)
    settings = replace(settings, api=replace(settings.api, port=port))
    sockets = bind_sockets(settings.api)
    if job.host is not None:
        move_to(job.host)
    job.fronts.add(Started())
    asyncio.run(child.until_terminated(_serve(job, settings, sockets)))


async def _serve(job: Job, settings: Settings, sockets: list[socket.socket]) -> None:
    def told(result: object) -> None:
        if isinstance(result, StartedWork) and result.turn is not None:
            job.fronts.add(Took(turn=result.turn.id, resumed=result.resumed))

    killer = Killer(None, job.fronts, job.folder)
    inner = await open_store(job.store_url, home=job.folder)
    async with WatchedStore(inner, killer.reach, told) as store:
        means = child.make_means(job, store, killer)
        async with Engine(means, role="serve", version="0") as engine:
            await serve_api(
                engine, settings, sockets=sockets, on_ready=lambda _: job.fronts.add(Ready())
            )


@dataclass(kw_only=True)
class Gateways:
    """Several of them on one store; each comes back on its port."""

    #: The job of each: the same, except for the way to the store.
    jobs: list[Job]
    ports: list[int] = field(default_factory=list[int])
    kills: int = 0
    _running: list[BaseProcess] = field(default_factory=list["BaseProcess"])

    def __enter__(self) -> Self:
        self.ports = _free_ports(len(self.jobs))
        self._running = [
            processes.fork(main, job, port) for job, port in zip(self.jobs, self.ports, strict=True)
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running:
            process.terminate()
        for process in self._running:
            with contextlib.suppress(processes.Stuck):
                processes.ended(process)

    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self.ports]

    def kill(self, number: int) -> None:
        """``kill -9``, and a new one in its place."""
        process, job = self._running[number], self.jobs[number]
        job.fronts.add(Killed(place="gateway", pid=process.pid or 0))
        processes.send(process, signal.SIGKILL)
        process.join()
        self.kills += 1
        self._running[number] = processes.fork(main, job, self.ports[number])


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [probe.getsockname()[1] for probe in probes]
