"""Jobs of OpenClaw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.core.payload import as_object, as_text
from clew.core.route import Route
from clew.foreign.chat_messages import read_moment
from clew.foreign.conversations import ForeignProblem
from clew.foreign.folders import get_nested
from clew.foreign.homes import ForeignJob
from clew.foreign.readers.openclaw.routing import list_routes

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_job(job: Mapping[str, Any], number: int) -> ForeignJob | ForeignProblem:
    """Return a job, as it is in a file or in the database."""
    payload = as_object(job.get("payload"))
    name = as_text(job.get("id") or job.get("jobId")) or str(number)
    title = as_text(job.get("displayName")) or as_text(job.get("name"))
    place = f"job {title or name}"
    schedule = _read_schedule(as_object(job.get("schedule")))
    prompt = as_text(payload.get("message")) or as_text(payload.get("text"))
    if job.get("declarationKey"):
        return ForeignProblem(place=place, reason="OpenClaw made it for its own upkeep")
    if not schedule or not prompt:
        reason = "its schedule cannot be read" if prompt else "it has no prompt"
        return ForeignProblem(place=place, reason=reason)
    return ForeignJob(
        id=name,
        title=title,
        prompt=prompt,
        schedule=schedule,
        zone=as_text(get_nested(job, "schedule.tz")),
        enabled=job.get("enabled") not in (False, 0),
        route=_find_route(job, payload),
    )


def _read_schedule(told: Mapping[str, Any]) -> str:
    every = told.get("everyMs")
    match told.get("kind"):
        case "cron":
            fields = (as_text(told.get("expr")) or as_text(told.get("cron"))).split()
            return " ".join(fields) if len(fields) == 5 else ""
        case "every" if isinstance(every, int | float):
            return f"every {max(1, int(every / 1000))}"
        case "at":
            at = read_moment(told.get("at") or told.get("atMs"), 0)
            return f"at {at}" if at else ""
        case _:
            return ""


def _find_route(job: Mapping[str, Any], payload: Mapping[str, Any]) -> Route | None:
    """Return the chat that is told, else the chat that the job was made in."""
    told = as_object(job.get("delivery")) or payload
    channel, chat = as_text(told.get("channel")), as_text(told.get("to"))
    chat = chat.removeprefix(f"{channel}:")
    if channel in ("", "last") or not chat:
        return next(iter(list_routes(as_text(job.get("sessionKey")))), None)
    chat, _, thread = chat.partition(":topic:")
    kind, _, rest = chat.partition(":")
    if kind in ("channel", "group", "user", "chat"):
        chat = rest
    is_group = chat.startswith("-") or kind in ("channel", "group")
    kind = "group" if is_group else "dm"
    return Route(platform=channel, kind=kind, chat=chat, thread=thread or None)
