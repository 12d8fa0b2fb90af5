"""Many processes on one conversation at once: clients that come and go, and one that stays."""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.killing import processes
from tests.killing.campaign import NotAsPlanned
from tests.killing.plans import Say

if TYPE_CHECKING:
    from tests.killing.campaign import Campaign

#: The messages of each client, repeated.
PLANS = ("", "look put", "send", "")


def crowd(campaign: Campaign, *, clients: int, messages: int) -> None:
    """
    Let clients say their messages, one after the other each, all in one conversation.

    :raises NotAsPlanned: if one of them fails
    """
    job = replace(campaign.job, one_by_one=True)
    serving = processes.start(replace(campaign.job, stays=True))
    says = [
        [Say(key=f"c1m{100 * n + i}", plan=PLANS[(n + i) % len(PLANS)]) for i in range(messages)]
        for n in range(1, clients + 1)
    ]
    running = [processes.start(replace(job, says=each, own_only=True)) for each in says]
    codes = [processes.ended(each, within=processes.LONGEST * messages) for each in running]
    processes.send(serving, signal.SIGTERM)
    codes.append(processes.ended(serving))
    if any(codes):
        raise NotAsPlanned(f"exit codes {codes}\n{campaign.output()[-4000:]}")
