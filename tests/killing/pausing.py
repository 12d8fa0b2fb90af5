"""Stopping an owner past its lease (SIGSTOP), while another one takes its turn over and ends it."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clew.store.transactions import journal, turns
from tests.killing import processes
from tests.killing.campaign import NotAsPlanned
from tests.killing.killer import Place, job_name
from tests.killing.records import Ended, Killed

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from tests.killing.campaign import Campaign
    from tests.killing.child import Job
    from tests.killing.plans import Say

#: Seconds: a healthy owner on a busy machine renews it in time.
LEASE = 5.0
#: Seconds after which an owner has taken over what can be taken over.
PATIENCE = 120.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Pause:
    """Points at which an owner is stopped, each just before a write that must then be refused."""

    place: str
    plan: str


#: The first ones go on with the write itself, which only the fence can refuse.
PAUSES = (
    Pause(place=f"{job_name(turns.store_step)} before", plan="look put"),
    Pause(place=f"{job_name(turns.store_request)} before", plan="look put"),
    Pause(place=f"{job_name(journal.record_intent)} before", plan="send; put"),
    Pause(place=f"{job_name(journal.record_result)} before", plan="send look"),
    Pause(place=f"{job_name(turns.finish_turn)} before", plan="send"),
    Pause(place="tool send before", plan="look send"),
    Pause(place="tool put after", plan="put; look"),
    Pause(place="tool wipe before", plan="wipe"),
    Pause(place="front: delta", plan="look"),
)
#: It was stopped in the middle of a transaction: with SQLite nobody else can write then.
IN_TRANSACTION = "in the middle of a transaction of its own"


def stop_and_go_on(campaign: Campaign, pause: Pause) -> None:
    """
    Stop an owner, let another one end its turn, wake the first one and let it end by itself.

    :raises NotAsPlanned: if it did not happen in this order
    """
    (say,) = campaign.says([pause.plan])
    job = replace(campaign.job, lease=LEASE)
    place = Place(name=pause.place, signal=signal.SIGSTOP)
    stopped = processes.start(replace(job, says=[say], place=place))
    try:
        taken_over = _taken_over(campaign, job, say, stopped)
    except BaseException:
        # It would hear nothing but this.
        stopped.kill()
        raise
    campaign.kills[pause.place if taken_over else IN_TRANSACTION] += 1


def _taken_over(campaign: Campaign, job: Job, say: Say, stopped: BaseProcess) -> bool:
    _await_stop(job, campaign.kills.total())
    other = processes.start(job)
    other.join(PATIENCE)
    taken_over = other.exitcode is not None
    ended = [record.pid for record in job.fronts.of(Ended) if record.key == say.key]
    if taken_over and ended != [other.pid]:
        raise NotAsPlanned(f"{say}: ended by {ended}, which should be {other.pid}")
    processes.send(stopped, signal.SIGCONT)
    codes = [processes.ended(process) for process in (other, stopped)]
    if any(codes):
        raise NotAsPlanned(f"{say}: exit codes {codes}\n{campaign.output()[-4000:]}")
    return taken_over


def _await_stop(job: Job, before: int) -> None:
    end = time.monotonic() + processes.LONGEST
    while len(job.fronts.of(Killed)) <= before:
        if time.monotonic() > end:
            raise NotAsPlanned("the process did not come to the place where it is stopped")
        time.sleep(0.01)
