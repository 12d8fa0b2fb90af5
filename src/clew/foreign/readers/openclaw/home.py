"""Home of OpenClaw."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.core.payload import as_list, as_object, as_text
from clew.foreign.conversations import ForeignConversation, ForeignProblem
from clew.foreign.folders import (
    find_skills,
    get_nested,
    list_secret_keys,
    read_json,
    read_json_with_comments,
    read_memory,
)
from clew.foreign.homes import ForeignSecret, PlainHome
from clew.foreign.item_list import ItemList
from clew.foreign.jsonl import is_recent
from clew.foreign.readers.openclaw.extras import list_allowed, list_settings, query_jobs
from clew.foreign.readers.openclaw.files import SessionFiles, list_session_files
from clew.foreign.readers.openclaw.jobs import read_job
from clew.foreign.readers.openclaw.records import add_record
from clew.foreign.readers.openclaw.routing import list_routes
from clew.foreign.readers.openclaw.store import SessionStore
from clew.foreign.sqlite_files import explain_error
from clew.foreign.trees import TreeNode, split_paths

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.foreign.homes import (
        ForeignJob,
        ForeignMemory,
        ForeignPerson,
        ForeignSetting,
        ForeignSkill,
        Found,
    )
    from clew.foreign.readers.openclaw.store import StoredSession


def read_paths(session: StoredSession) -> Iterator[ForeignConversation]:
    """Yield the main path of a session's records, then its branches."""
    lines = session.lines
    for path in split_paths(
        [_make_node(line.data) for line in lines],
        # What has no message is beside the main path: labels, changes of the model.
        lambda _, new: any(lines[place].data.get("type") == "message" for place in new),
    ):
        items = ItemList(session.at)
        for place in path.places:
            line = lines[place]
            if line.is_damaged:
                items.add_damaged(line)
            else:
                add_record(items, f"line-{line.number}", line.data)
        if items.items:
            yield ForeignConversation(
                id=f"{session.id}/{path.origin}" if path.origin else session.id,
                items=items.items,
                created_at=min(item.at for item in items.items),
                branch_of=session.id if path.origin else session.source,
                routes=[] if path.origin else list_routes(session.key),
                is_growing=is_recent(session.at),
            )


def _make_node(data: dict[str, Any]) -> TreeNode:
    if data.get("type") == "session":
        return TreeNode()
    parent = data.get("targetId") if data.get("type") == "leaf" else data.get("parentId")
    return TreeNode(id=as_text(data.get("id")), parent=as_text(parent) or None)


class OpenClawHome(PlainHome):
    """The folder of OpenClaw."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._config = as_object(read_json_with_comments(folder / "openclaw.json"))
        self._state = folder / "state/openclaw.sqlite"
        self.description = f"OpenClaw, {folder}"

    def iter_conversations(self, *, since: int = 0) -> Iterator[Found]:
        """Yield the sessions of each agent's database, then those of older releases."""
        for file in sorted(self._folder.glob("agents/*/agent/openclaw-agent.sqlite")):
            try:
                for found in SessionStore(file).iter_sessions(since):
                    yield from [found] if isinstance(found, ForeignProblem) else read_paths(found)
            except sqlite3.Error as error:
                yield ForeignProblem(place=str(file), reason=explain_error(error))
        files = SessionFiles()
        for file in list_session_files(self._folder, since):
            try:
                yield from read_paths(files.read(file))
            except OSError as error:
                yield ForeignProblem(place=str(file), reason=str(error))

    def _list_workspaces(self) -> list[Path]:
        agents = as_list(get_nested(self._config, "agents.list"))
        told = [get_nested(self._config, "agents.defaults.workspace")]
        told += [as_object(agent).get("workspace") for agent in agents]
        named = [Path(as_text(one)).expanduser() for one in told if as_text(one)]
        usual = self._folder / "workspace"
        # A folder that was copied from another machine has its workspace inside.
        return list(dict.fromkeys([usual, *(one for one in named if one.is_dir())]))

    def list_memory(self) -> Sequence[ForeignMemory]:
        found: list[ForeignMemory] = []
        for space in self._list_workspaces():
            daily = sorted(f"memory/{path.name}" for path in space.glob("memory/*.md"))
            found += read_memory(space, "MEMORY.md", "USER.md", *daily)
        return found

    def list_skills(self) -> Sequence[ForeignSkill]:
        places = [self._folder, *self._list_workspaces()]
        return [skill for place in places for skill in find_skills(place / "skills")]

    def list_jobs(self) -> Sequence[ForeignJob | ForeignProblem]:
        """Return the jobs of the database, then those that are only in the older file."""
        stored = as_object(read_json(self._folder / "cron/jobs.json"))
        told = [*query_jobs(self._state), *map(as_object, as_list(stored.get("jobs")))]
        jobs: dict[str, ForeignJob | ForeignProblem] = {}
        for number, job in enumerate(told, 1):
            name = as_text(job.get("id") or job.get("jobId")) or str(number)
            jobs.setdefault(name, read_job(job, number))
        return list(jobs.values())

    def list_people(self) -> Sequence[ForeignPerson]:
        return list(list_allowed(self._folder, self._config, self._state))

    def list_settings(self) -> Sequence[ForeignSetting]:
        return list(list_settings(self._config))

    def list_secrets(self) -> Sequence[ForeignSecret]:
        found = list(list_secret_keys(self._config, "openclaw.json"))
        for file in sorted(self._folder.glob("agents/*/agent/auth-profiles.json")):
            found += list_secret_keys(read_json(file), str(file.relative_to(self._folder)))
        return found
