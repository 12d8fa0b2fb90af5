"""Access of the creators of jobs: a job runs as long as its creator may talk to the agent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import structlog

from clew.config.channel_access import make_access_policy
from clew.core.access import (
    AccessDecision,
    AccessPolicy,
    AccessStatus,
    ChannelAccount,
    decide_access,
)
from clew.core.channel_events import DM, OutboundMessage
from clew.core.delivery import DeliveryKind
from clew.core.ids import DeliveryId
from clew.core.route import Route
from clew.features.schedule.jobs import (
    JOBS,
    JobState,
    find_chat_conversation,
    lock_job,
    pause_job,
)
from clew.features.schedule.wording import format_pause
from clew.store.transactions import pairings
from clew.store.transactions.deliveries import deliver_to_chat

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.config.settings import Settings
    from clew.features.schedule.jobs import ScheduledJob
    from clew.store.contract import Tx

    #: By the name of the channel's table.
    Policies = Mapping[str, AccessPolicy]

log = structlog.get_logger(__name__)

NO_ACCESS: Final = "no_access"


def make_policies(settings: Settings) -> Policies:
    """Return the access policy of each channel."""
    return {name: make_access_policy(channel) for name, channel in settings.channels.items()}


def is_excluded(t: Tx, job: ScheduledJob, policies: Policies, *, lock: bool = True) -> bool:
    """
    Return whether whoever created a job may not talk to the agent any more.

    With ``lock`` that stays so until the commit.
    """
    told = json.loads(job.payload)
    if "account" not in told or "sender" not in told:
        return False
    account = ChannelAccount(channel=told["account"][0], account=told["account"][1])
    user: str = told["sender"]["id"]
    find = pairings.lock_access_status if lock else pairings.get_access_status
    status = find(t, account, user)
    if job.route is None:
        return status in (AccessStatus.REMOVED, AccessStatus.BLOCKED)
    return not _may_talk(Route.parse(job.route), user, status, policies)


def _may_talk(route: Route, user: str, status: AccessStatus | None, policies: Policies) -> bool:
    policy = policies.get(route.account or route.platform)
    if policy is None:
        # Its channel is not in the settings any more: what people were granted still counts.
        policy = AccessPolicy(allow=frozenset({user}), groups=frozenset({route.chat}))
    decision = decide_access(
        policy, status, user=user, kind=route.kind, chat=route.chat, addressed=True
    )
    return decision is AccessDecision.ALLOW


def pause_excluded(t: Tx, job: ScheduledJob) -> None:
    """Pause the job of an excluded creator, and tell the others of its chat."""
    pause_job(t, job, reason=NO_ACCESS)
    log.warning("job_paused", job=job.id, reason=NO_ACCESS)
    conversation = find_chat_conversation(t, job)
    if job.route is None or conversation is None or Route.parse(job.route).kind == DM:
        return
    deliver_to_chat(
        t,
        conversation,
        job.route,
        OutboundMessage(text=format_pause(job, NO_ACCESS), markup=False),
        id=DeliveryId(f"dlv_{job.id}_paused_{t.now}"),
        kind=DeliveryKind.NOTICE,
    )


def list_excluded_jobs(t: Tx, policies: Policies) -> list[str]:
    """Return the jobs that are on and whose creators are excluded."""
    created = JOBS.fetch_all(t, """WHERE state = 'on' AND payload LIKE '%"account"%'""")
    return [job.id for job in created if is_excluded(t, job, policies, lock=False)]


def pause_if_excluded(t: Tx, job_id: str, policies: Policies) -> None:
    """Pause a job if its creator is excluded."""
    job = lock_job(t, job_id)
    if job is not None and job.state is JobState.ON and is_excluded(t, job, policies):
        pause_excluded(t, job)
