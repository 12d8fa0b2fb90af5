"""One home of nanobot."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from clew.core.payload import as_list, as_object, as_text
from clew.foreign.chat_messages import read_moment
from clew.foreign.conversations import ForeignConversation, ForeignProblem
from clew.foreign.folders import find_skills, get_nested, list_secret_keys, read_json, read_memory
from clew.foreign.homes import ForeignJob, ForeignPerson, ForeignSetting, PlainHome
from clew.foreign.readers.nanobot.routing import list_routes
from clew.foreign.readers.nanobot.sessions import read_head, read_key, read_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clew.foreign.homes import (
        ForeignMemory,
        ForeignSecret,
        ForeignSkill,
        Found,
    )

#: Milliseconds since its last change in which a session may still be written to.
_RECENT: Final = 600_000
#: Their names, ours.
_SETTINGS: Final = {
    "agents.defaults.timezone": "schedule.timezone",
    "agents.defaults.maxToolIterations": "agent.max_steps",
    "agents.defaults.contextWindowTokens": "model.context_window",
    "agents.defaults.reasoningEffort": "",
}


class NanobotHome(PlainHome):
    """A folder of nanobot."""

    def __init__(self, folder: Path, files: Sequence[Path] | None = None) -> None:
        self._folder = folder
        self._config = as_object(read_json(folder / "config.json"))
        self._workspace = self._find_workspace()
        self._only = files
        count = len(self._list_files())
        self.description = f"nanobot, {count} session{'s' * (count != 1)}, {folder}"

    @property
    def has_sessions(self) -> bool:
        """Return whether there is a session."""
        return bool(self._list_files())

    def _find_workspace(self) -> Path:
        named = as_text(get_nested(self._config, "agents.defaults.workspace"))
        usual = self._folder / "workspace"
        place = Path(named).expanduser() if named else usual
        # A home that was copied from another machine has its workspace inside.
        return place if place.is_dir() and not usual.is_dir() else usual

    def _list_files(self) -> list[Path]:
        if self._only is not None:
            return list(self._only)
        found: dict[Path, None] = {}
        for folder in (self._folder, self._workspace):
            for pattern in ("sessions/*.jsonl", "sessions/*/*.jsonl"):
                found |= dict.fromkeys(sorted(folder.glob(pattern)))
        return list(found) or sorted(self._folder.glob("*.jsonl"))

    def iter_conversations(self, *, since: int = 0) -> Iterator[Found]:
        seen: set[str] = set()
        for _, file in sorted(map(_date_file, self._list_files())):
            try:
                key = read_key(file, read_head(file))
                name = key if key not in seen else f"{key} in {file.parent.name}"
                seen.add(key)
                found = self._read(file, name, is_first=name == key)
            except OSError as error:
                yield ForeignProblem(place=file.name, reason=str(error))
                continue
            if found is not None and _last_use(found) >= since:
                yield found

    def _read(self, file: Path, name: str, *, is_first: bool) -> ForeignConversation | None:
        session = read_session(file, self._folder / "media")
        if not session.items:
            return None
        routes = list_routes(session.key)
        if session.key.startswith("unified:"):
            routes = list_routes(session.last_channel)
        changed = max(session.updated_at, int(file.stat().st_mtime * 1000))
        return ForeignConversation(
            id=name,
            title=session.title,
            created_at=session.created_at,
            items=session.items,
            routes=routes if is_first else (),
            is_growing=changed > time.time() * 1000 - _RECENT,
        )

    def list_memory(self) -> Sequence[ForeignMemory]:
        texts = read_memory(self._workspace / "memory", "MEMORY.md")
        return [*texts, *read_memory(self._workspace, "USER.md")]

    def list_skills(self) -> Sequence[ForeignSkill]:
        return find_skills(self._workspace / "skills")

    def list_jobs(self) -> Sequence[ForeignJob | ForeignProblem]:
        jobs: dict[str, ForeignJob | ForeignProblem] = {}
        for folder in (self._workspace, self._folder):
            stored = as_list(as_object(read_json(folder / "cron" / "jobs.json")).get("jobs"))
            for number, one in enumerate(stored, 1):
                job = as_object(one)
                jobs.setdefault(as_text(job.get("id")) or str(number), _read_job(job, number))
        return list(jobs.values())

    def list_people(self) -> Sequence[ForeignPerson]:
        approved = as_object(as_object(read_json(self._folder / "pairing.json")).get("approved"))
        allowed = {
            channel: _get(as_object(told), "allowFrom", "allow_from")
            for channel, told in as_object(self._config.get("channels")).items()
        }
        people: dict[tuple[str, str], ForeignPerson] = {}
        for channel, names in (*approved.items(), *allowed.items()):
            for value in as_list(names):
                name, _, user = as_text(value).partition("|")
                if name and name != "*":
                    person = ForeignPerson(platform=channel, id=name, name=user)
                    people.setdefault((channel, name), person)
        return list(people.values())

    def list_settings(self) -> Sequence[ForeignSetting]:
        found: list[ForeignSetting] = []
        if model := as_text(get_nested(self._config, "agents.defaults.model")):
            provider = as_text(get_nested(self._config, "agents.defaults.provider"))
            value = _name_model(model, provider)
            found.append(ForeignSetting(origin="model", name="model.name", value=value))
        for origin, ours in _SETTINGS.items():
            value = as_text(get_nested(self._config, origin))
            if value:
                found.append(ForeignSetting(origin=origin, name=ours, value=value))
        return found

    def list_secrets(self) -> Sequence[ForeignSecret]:
        return list(list_secret_keys(self._config, "config.json"))


def _date_file(file: Path) -> tuple[int, Path]:
    try:
        return read_moment(read_head(file).get("created_at"), 0), file
    except OSError:
        return 0, file


def _last_use(found: ForeignConversation) -> int:
    return max((item.at for item in found.items), default=found.created_at)


def _get(told: Mapping[str, Any], *keys: str) -> Any:
    return next((told[key] for key in keys if told.get(key) is not None), None)


def _name_model(model: str, provider: str) -> str:
    if provider not in ("", "auto"):
        return f"{provider}:{model.removeprefix(f'{provider}/')}"
    return model.replace("/", ":", 1) if "/" in model else f"openai-chat:{model}"


def _read_job(job: Mapping[str, Any], number: int) -> ForeignJob | ForeignProblem:
    told, payload = as_object(job.get("schedule")), as_object(job.get("payload"))
    title = as_text(job.get("name"))
    schedule, prompt = _read_schedule(told), as_text(payload.get("message"))
    if not schedule or not prompt:
        reason = "its schedule cannot be read" if prompt else "it has no prompt"
        return ForeignProblem(place=f"job {title or number}", reason=reason)
    channel = _get(payload, "originChannel", "origin_channel", "channel")
    chat = _get(payload, "originChatId", "origin_chat_id", "to")
    key = as_text(_get(payload, "sessionKey", "session_key"))
    routes = list_routes(key or f"{as_text(channel)}:{as_text(chat)}")
    return ForeignJob(
        id=as_text(job.get("id")) or str(number),
        title=title,
        prompt=prompt,
        schedule=schedule,
        zone=as_text(told.get("tz")),
        enabled=job.get("enabled") is not False,
        route=routes[0] if routes else None,
    )


def _read_schedule(told: Mapping[str, Any]) -> str:
    every, at = _get(told, "everyMs", "every_ms"), _get(told, "atMs", "at_ms")
    match told.get("kind"):
        case "cron":
            return as_text(told.get("expr"))
        case "every" if isinstance(every, int | float):
            return f"every {max(1, int(every / 1000))}"
        case "at" if isinstance(at, int | float):
            return f"at {int(at)}"
        case _:
            return ""
