"""Commands in the background whose gateways are killed around their start and their end."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from clew.store.checks.registry import find_all
from clew.testing import Calls, ScriptedCall, Text
from tests.killing import processes
from tests.killing.campaign import KILLED, NotAsPlanned
from tests.killing.child import until_terminated
from tests.killing.killer import Place
from tests.killing.process_gateway import open_gateway, open_gateway_store
from tests.waiting import wait_until

if TYPE_CHECKING:
    from clew.store.contract import Tx
    from clew.testing import ProviderRequest, Reply
    from tests.killing.process_gateway import GatewayJob

_JOBS = ("processes.ask_process", "processes.mark_running", "processes.settle_process")
#: The turn that the end of a command begins is the second one of its gateway.
_TURNS = ("turns.begin_work", "turns.finish_turn")
POINTS = tuple(
    Place(name=f"{job} {where}", nth=1 if job in _JOBS else 2)
    for job in (*_JOBS, *_TURNS)
    for where in ("before", "inside", "after")
)


def start_and_note(request: ProviderRequest) -> Reply:
    """Run the command of a message in the background; answer everything else."""
    last = request.messages[-1]
    found = re.fullmatch(r"go (\d+)", last.text)
    if last.results or found is None:
        return Text("noted")
    n = int(found[1])
    line = f"echo run >> runs; echo told {n}; exit {n % 7}"
    return Calls((ScriptedCall("shell", {"command": line, "background": True}),))


@dataclass(kw_only=True)
class KilledEnds:
    """A store in which a command is started for each kill."""

    job: GatewayJob
    said: list[str] = field(default_factory=list[str])

    def kill_at(self, place: Place) -> None:
        """
        Kill a gateway whose agent starts a command, and let another one go on to the end.

        :raises NotAsPlanned: if the place was not reached, or one of them failed
        """
        self.said.append(f"go {len(self.said)}")
        job = replace(self.job, messages=tuple(self.said))
        for wanted, one in ((KILLED, replace(job, place=place)), (0, job)):
            if (code := processes.ended(processes.fork(run_to_end, one))) != wanted:
                raise NotAsPlanned(f"{place.name}: exit code {code}")

    def find_wrong(self) -> list[str]:
        """Return what is wrong: each command runs once, and its end is told once, as it was."""
        runs = [one.read_text() for one in (self.job.home / "work").glob("*/runs")]
        wrong = [] if runs == ["run\n"] * len(self.said) else [f"the runs are {runs}"]
        return [*wrong, *asyncio.run(self._look())]

    async def _look(self) -> list[str]:
        async with await open_gateway_store(self.job) as store:
            told = await store.read(_read_told)
            findings = await store.read(find_all)
        wanted = [f"told {n}\n[exit code {n % 7}, " for n in range(len(self.said))]
        wrong = [repr(one) for one in wanted if sum(one in text for text, _ in told) != 1]
        wrong += [f"{len(told)} ends were told"] * (len(told) != len(wanted))
        turns = {turn for _, turn in told}
        wrong += [f"they began {len(turns)} turns"] * (len(turns) != len(wanted))
        return [*wrong, *map(str, findings)]


def _read_told(t: Tx) -> list[tuple[str, str]]:
    rows = t.fetch_all("SELECT text, turn_id FROM inbox WHERE kind = 'completion'")
    return [(text, turn) for text, turn in rows]


def run_to_end(job: GatewayJob) -> None:
    """Be a gateway until every end was told and answered."""
    asyncio.run(until_terminated(_run(job)))


async def _run(job: GatewayJob) -> None:
    async with open_gateway(job) as store:

        async def is_over() -> bool:
            return await store.read(_count_answered) == 2 * len(job.messages)

        await wait_until(is_over, seconds=60)


def _count_answered(t: Tx) -> int:
    return t.fetch_value("SELECT count(*) FROM turn WHERE outcome = 'answered'")
