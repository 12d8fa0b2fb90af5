"""The chat command ``/jobs``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.errors import UsageError
from clew.features.schedule import front, jobs
from clew.features.schedule.editing import ScheduleEdit, edit_schedule
from clew.features.schedule.tool_calls import change_job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.scope import Scope
    from clew.plugin import CommandCall
    from clew.store.contract import Tx

_ACTIONS: Final = ("pause", "resume", "run", "remove")
#: What can be changed, with an example.
_EXAMPLES: Final = {
    "zone": "America/New_York",
    "at": "2030-12-01T08:00",
    "every": "2h",
    "cron": "30 8 * * 1-5",
}
_CRON_FIELDS: Final = 5
#: Fires that are shown.
_SHOWN: Final = 10


async def run_jobs_command(call: CommandCall, argument: str) -> str:
    """List the jobs of the chat, show one, or change one."""
    words = argument.split()
    store = call.services.store
    if words and words[0] in _ACTIONS:
        if len(words) < 2:
            raise UsageError(f"/jobs {words[0]} needs the id of a job: /jobs lists them")
        return await store.write(_change, words[0], " ".join(words[1:]), call.viewer)
    if words and words[0] in _EXAMPLES:
        if len(words) < 3:
            raise UsageError(f"say which job and what: /jobs {words[0]} ID {_EXAMPLES[words[0]]}")
        return await store.write(_edit, words[0], words[1:], call.viewer)
    if words:
        return await store.read(_show, argument, call.viewer)
    return await store.read(_list, call.viewer)


def _list(t: Tx, viewer: Scope) -> str:
    found = jobs.list_jobs(t, viewer=viewer)
    if not found:
        return "There are no jobs. Ask for one: every morning at 8, tell me …"
    lines = [front.format_job(job) for job in found]
    return "\n".join([*lines, "/jobs ID shows the last runs; pause, resume, run or remove ID."])


def _show(t: Tx, name: str, viewer: Scope) -> str:
    job = front.find_job(t, name, viewer=viewer)
    return f"{front.format_job(job)}\n{job.task}\n{front.format_log(t, job, limit=_SHOWN)}"


def _change(t: Tx, action: str, name: str, viewer: Scope) -> str:
    job = front.find_job(t, name, viewer=viewer)
    return change_job(t, job, action)


def _edit(t: Tx, what: str, words: Sequence[str], viewer: Scope) -> str:
    # A zone, a time and a period are one word; a title may have several.
    size = len(words) - (_CRON_FIELDS if what == "cron" else 1)
    if words[-1].startswith("@"):
        size = len(words) - 1
    name, value = " ".join(words[:size]), " ".join(words[size:])
    if size < 1:
        raise UsageError(f"a cron expression has five fields: /jobs cron ID {_EXAMPLES['cron']}")
    job = front.find_job(t, name, viewer=viewer)
    return front.format_job(edit_schedule(t, job, ScheduleEdit(**{what: value})))
