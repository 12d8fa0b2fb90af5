"""What Hermes Agent keeps beside conversations: jobs, people, settings, names of secrets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from clew.core.payload import as_list, as_object, as_text
from clew.foreign.chat_messages import read_moment
from clew.foreign.conversations import ForeignProblem
from clew.foreign.folders import (
    get_nested,
    list_secret_keys,
    list_secret_variables,
    read_json,
    read_variables,
    read_yaml,
)
from clew.foreign.homes import ForeignJob, ForeignPerson, ForeignSecret, ForeignSetting
from clew.foreign.readers.hermes.routing import make_chat_route

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from clew.core.route import Route

_ALLOWED: Final = re.compile(r"([A-Z_]+)_ALLOWED_USERS")
#: Their names, ours (empty if there is none).
_SETTINGS: Final = {
    "timezone": "schedule.timezone",
    "compression.enabled": "compaction.enabled",
    "compression.threshold": "compaction.threshold",
    "agent.max_turns": "agent.max_steps",
    "agent.reasoning_effort": "",
    "terminal.backend": "",
}


def list_jobs(path: Path) -> Iterator[ForeignJob | ForeignProblem]:
    """Yield the jobs of ``cron/jobs.json``."""
    if not path.exists():
        return
    stored = read_json(path)
    if stored is None:
        yield ForeignProblem(place="cron/jobs.json", reason="it is not JSON")
    jobs = as_list(stored) or as_list(as_object(stored).get("jobs"))
    for number, job in enumerate(jobs, 1):
        yield _read_job(as_object(job), number)


def _read_job(job: Mapping[str, Any], number: int) -> ForeignJob | ForeignProblem:
    name = as_text(job.get("id")) or str(number)
    title = as_text(job.get("name"))
    place = f"job {title or name}"
    schedule = _read_schedule(job.get("schedule"))
    prompt = as_text(job.get("prompt"))
    if not schedule:
        return ForeignProblem(place=place, reason="its schedule cannot be read")
    if job.get("no_agent") or not prompt:
        return ForeignProblem(place=place, reason="it runs a script and has no prompt")
    return ForeignJob(
        id=name,
        title=title,
        prompt=prompt,
        schedule=schedule,
        enabled=job.get("enabled") is not False and job.get("state") != "paused",
        route=_read_target(job),
    )


def _read_schedule(value: object) -> str:
    told = as_object(value)
    if isinstance(value, str):
        return value if len(value.split()) == 5 else ""
    match told.get("kind"):
        case "cron":
            return " ".join(as_text(told.get("expr")).split()[:5])
        case "interval" if isinstance(told.get("minutes"), int | float):
            return f"every {int(told['minutes'] * 60)}"
        case "once":
            at = read_moment(told.get("run_at"), 0)
            return f"at {at}" if at else ""
        case _:
            return ""


def _read_target(job: Mapping[str, Any]) -> Route | None:
    target = as_text(job.get("deliver"))
    if target == "origin":
        return make_chat_route(as_object(job.get("origin")))
    platform, _, rest = target.partition(":")
    chat, _, thread = rest.partition(":")
    return make_chat_route({"platform": platform, "chat_id": chat, "thread_id": thread})


def list_people(folder: Path) -> Iterator[ForeignPerson]:
    """Yield the people who were paired, and those that variables list."""
    seen: set[tuple[str, str]] = set()
    for person in (*_list_paired(folder), *_list_allowed(folder / ".env")):
        if (person.platform, person.id) not in seen:
            seen.add((person.platform, person.id))
            yield person


def _list_paired(folder: Path) -> Iterator[ForeignPerson]:
    for place in ("platforms/pairing", "pairing"):
        for file in sorted(folder.glob(f"{place}/*-approved.json")):
            platform = file.name.removesuffix("-approved.json")
            for name, about in as_object(read_json(file)).items():
                told = as_object(about)
                yield ForeignPerson(platform=platform, id=name, name=as_text(told.get("user_name")))


def _list_allowed(path: Path) -> Iterator[ForeignPerson]:
    for name, value in read_variables(path).items():
        match = _ALLOWED.fullmatch(name)
        if match and match[1] != "GATEWAY" and not match[1].endswith("_GROUP"):
            people = {person.strip() for person in value.split(",")} - {"", "*"}
            for person in sorted(people):
                yield ForeignPerson(platform=match[1].lower(), id=person)


def list_settings(path: Path) -> Iterator[ForeignSetting]:
    """Yield the settings that people set and that mean something here."""
    told = read_yaml(path)
    model = as_object(told.get("model"))
    name = as_text(told.get("model")) or as_text(model.get("default") or model.get("model"))
    if name:
        yield ForeignSetting(origin="model", name="model.name", value=_name_model(name, model))
    if address := as_text(model.get("base_url")):
        yield ForeignSetting(origin="model.base_url", name="model.base_url", value=address)
    for origin, ours in _SETTINGS.items():
        value = get_nested(told, origin)
        if value not in (None, "") and not isinstance(value, dict | list):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            yield ForeignSetting(origin=origin, name=ours, value=text)


def _name_model(name: str, told: Mapping[str, Any]) -> str:
    provider = as_text(told.get("provider"))
    if told.get("base_url") and provider in ("", "custom", "auto"):
        return f"openai-chat:{name}"
    if provider in ("", "auto"):
        provider, _, rest = name.partition("/")
        known = provider in ("openai", "anthropic", "google", "mistral", "groq")
        return f"{provider}:{rest}" if rest and known else f"openrouter:{name}"
    return f"{provider}:{name}"


def list_secrets(folder: Path) -> Iterator[ForeignSecret]:
    """Yield the names of the secrets in ``.env``, ``auth.json`` and ``config.yaml``."""
    yield from list_secret_variables(folder / ".env", ".env")
    yield from list_secret_keys(read_json(folder / "auth.json"), "auth.json")
    yield from list_secret_keys(read_yaml(folder / "config.yaml"), "config.yaml")
