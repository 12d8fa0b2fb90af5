"""What is taken over besides conversations: memory, skills, jobs, people, settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.cli.feature_records import load_section
from clew.clock import from_millis
from clew.core.scope import LOCAL, scope_of
from clew.errors import ClewError, UsageError
from clew.features.admin.accounts import get_channel_account
from clew.features.memory.importing import ImportedFacts, import_markdown
from clew.features.schedule.importing import import_job
from clew.features.schedule.jobs import JobPlace
from clew.features.schedule.making import JobOwner, JobRequest
from clew.features.schedule.settings import ScheduleSettings, find_zone_name
from clew.features.skills.installing import add_skills
from clew.foreign.conversations import ForeignProblem
from clew.foreign.memory_text import list_facts
from clew.plugin.setting_change import change_setting
from clew.store.transactions import conversations, pairings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.config import Settings
    from clew.core.scope import Scope
    from clew.foreign.homes import (
        ForeignJob,
        ForeignMemory,
        ForeignPerson,
        ForeignSetting,
        ForeignSkill,
    )
    from clew.store.contract import Store, Tx

#: Facts of one write.
_FACTS_PER_WRITE: Final = 50


class MovedExtra:
    """Counts of one kind that was taken over, and sentences about what was left out."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.added = self.known = 0
        self.problems: list[str] = []

    def as_dict(self) -> dict[str, object]:
        """Return it as programs get it."""
        return {"added": self.added, "known": self.known, "problems": self.problems}


async def take_memory(
    store: Store, texts: Sequence[ForeignMemory], *, into: Scope | None
) -> MovedExtra:
    """Remember each fact of the texts; one that is known is not stored again."""
    done = MovedExtra("memory")
    for one in texts:
        facts = list_facts(one.text)
        for at in range(0, len(facts), _FACTS_PER_WRITE):
            text = "\n".join(f"- {fact}" for fact in facts[at : at + _FACTS_PER_WRITE])
            stored: ImportedFacts = await store.write(import_markdown, text, into or LOCAL)
            done.added += stored.added + stored.changed
            done.known += stored.known
            done.problems += [f"{one.name}: {problem}" for problem in stored.problems]
    return done


def take_skills(settings: Settings, skills: Sequence[ForeignSkill]) -> MovedExtra:
    """Copy skills that are not here; none of them is trusted."""
    done = MovedExtra("skills")
    for skill in skills:
        try:
            added = add_skills(settings.home, str(skill.folder))
        except (ClewError, OSError) as error:
            done.problems.append(f"{skill.name}: {error}")
            continue
        done.added += len(added.added)
        for name, reason in added.problems:
            if "one of that name" in reason:
                done.known += 1
            else:
                done.problems.append(f"{name}: {reason}")
    return done


async def take_jobs(
    store: Store, settings: Settings, system: str, jobs: Sequence[ForeignJob | ForeignProblem]
) -> MovedExtra:
    """Store jobs, paused: the other system may still run them."""
    done = MovedExtra("jobs")
    zone = find_zone_name(load_section(settings, "schedule", ScheduleSettings), settings)
    for job in jobs:
        if isinstance(job, ForeignProblem):
            done.problems.append(f"{job.place}: {job.reason}")
            continue
        try:
            added = await store.write(_take_job, system, job, zone=job.zone or zone)
        except UsageError as error:
            done.problems.append(f"{job.title or job.id}: {error}")
        else:
            done.added += added
            done.known += not added
    return done


def _take_job(t: Tx, system: str, job: ForeignJob, *, zone: str) -> bool:
    request, owner = _request_job(job, zone), _find_job_owner(t, job)
    return import_job(t, (system, job.id), request, owner, reason=f"taken over from {system}")


def _request_job(job: ForeignJob, zone: str) -> JobRequest:
    kind, _, rest = job.schedule.partition(" ")
    is_cron = kind not in ("every", "at")
    return JobRequest(
        task=job.prompt,
        title=job.title or None,
        every=f"{max(60, int(rest)) // 60}m" if kind == "every" else None,
        at=from_millis(int(rest)).isoformat() if kind == "at" else None,
        cron=job.schedule if is_cron else None,
        zone=zone,
        place=JobPlace.FRESH,
    )


def _find_job_owner(t: Tx, job: ForeignJob) -> JobOwner:
    route = job.route
    if route is None or conversations.resolve_route(t, route.key) is None:
        return JobOwner(scope=LOCAL, untrusted=True)
    return JobOwner(scope=scope_of(route), route=route.key, untrusted=True)


async def take_people(
    store: Store, settings: Settings, people: Sequence[ForeignPerson], *, by: str
) -> MovedExtra:
    """Grant access to people whose channel is configured here."""
    done = MovedExtra("people")
    for person in people:
        try:
            account = get_channel_account(settings, person.platform)
        except ClewError as error:
            done.problems.append(f"{person.platform}:{person.id}: {error}")
            continue
        added = await store.write(
            pairings.grant_access, account, person.id, name=person.name, by=by
        )
        done.added += added
        done.known += not added
    return done


def take_settings(settings: Settings, found: Sequence[ForeignSetting]) -> MovedExtra:
    """Write settings that have their default here."""
    done = MovedExtra("settings")
    for one in found:
        if not one.name:
            done.problems.append(f"{one.origin}: there is no such setting here")
            continue
        origin = settings.origins.get(one.name)
        if origin is not None and origin.kind != "default":
            done.known += 1
            continue
        try:
            change_setting(settings, one.name, one.value)
        except ClewError as error:
            done.problems.append(f"{one.origin}: {error}")
        else:
            done.added += 1
    return done
