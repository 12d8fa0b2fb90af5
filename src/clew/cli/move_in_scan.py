"""What there is at another system, before anything is written."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from clew.cli.output import get_outputs, pluralize
from clew.foreign.conversations import ForeignCompaction, ForeignMessage, ForeignProblem
from clew.foreign.steps import StepOrderer
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clew.foreign.conversations import ForeignConversation
    from clew.foreign.homes import (
        ForeignHome,
        ForeignJob,
        ForeignMemory,
        ForeignPerson,
        ForeignSecret,
        ForeignSetting,
        ForeignSkill,
    )

#: Problems that are printed one by one; the rest is counted.
_SHOWN_PROBLEMS: Final = 10


class FoundSystem(Record):
    """Counts of what can be taken over."""

    description: str
    conversations: int
    messages: int
    events: int
    compactions: int
    branches: int
    chats: int
    #: Calls without a result, results without a call, and items that wait for their step's end.
    missing_results: int
    lost_results: int
    waiting: int
    #: Kinds of events, most frequent first.
    event_kinds: Sequence[tuple[str, int]]
    problems: Sequence[ForeignProblem]
    memory: Sequence[ForeignMemory]
    skills: Sequence[ForeignSkill]
    jobs: Sequence[ForeignJob | ForeignProblem]
    people: Sequence[ForeignPerson]
    settings: Sequence[ForeignSetting]
    secrets: Sequence[ForeignSecret]

    def as_dict(self) -> dict[str, Any]:
        """Return it as programs get it; of secrets only names."""
        return {
            "found": self.description,
            "conversations": self.conversations,
            "messages": self.messages,
            "events": dict(self.event_kinds),
            "compactions": self.compactions,
            "branches": self.branches,
            "chats": self.chats,
            "calls_without_result": self.missing_results,
            "results_without_call": self.lost_results,
            "waiting": self.waiting,
            "problems": [{"place": one.place, "reason": one.reason} for one in self.problems],
            "memory": [one.name for one in self.memory],
            "skills": [one.name for one in self.skills],
            "jobs": [_name_job(one) for one in self.jobs],
            "people": [{"platform": one.platform, "id": one.id} for one in self.people],
            "settings": [{"there": one.origin, "here": one.name} for one in self.settings],
            "secrets": [{"name": one.name, "place": one.place} for one in self.secrets],
        }

    def print_found(self) -> None:
        """Print it for people."""
        out, notes = get_outputs()
        out.write(f"{self.description}\n")
        for name, text in self._list_lines():
            out.write(f"  {name:<14} {text}\n")
        for problem in self.problems[:_SHOWN_PROBLEMS]:
            notes.write(f"not readable: {problem.place}: {problem.reason}\n")
        if (rest := len(self.problems) - _SHOWN_PROBLEMS) > 0:
            notes.write(f"and {rest} more that are not readable (--json lists all)\n")

    def _list_lines(self) -> list[tuple[str, str]]:
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.event_kinds)
        texts = {
            "conversations": self._describe_conversations(),
            "messages": self._describe_messages(),
            "kept beside": f"{self.events:,}: {kinds}" if self.events else "",
            "chats": f"{self.chats:,} go on in their conversations" if self.chats else "",
            "memory": ", ".join(one.name for one in self.memory),
            "skills": ", ".join(one.name for one in self.skills),
            "jobs": ", ".join(_name_job(one) for one in self.jobs),
            "people": ", ".join(f"{one.platform}:{one.id}" for one in self.people),
            "settings": ", ".join(one.origin for one in self.settings),
            "secrets": ", ".join(f"{one.name} ({one.place})" for one in self.secrets),
        }
        return [(name, text) for name, text in texts.items() if text]

    def _describe_conversations(self) -> str:
        more = f", {self.branches:,} of them branches" if self.branches else ""
        return f"{self.conversations:,}{more}"

    def _describe_messages(self) -> str:
        parts = [f"{self.messages:,}"]
        told = (
            (self.compactions, "summary", "summaries", "of earlier ones"),
            (self.missing_results, "call", "calls", "without a result"),
            (self.lost_results, "result", "results", "without a call"),
            (self.waiting, "message", "messages", "in an unfinished step, for the next import"),
        )
        parts += [
            f"{pluralize(count, one, many)} {rest}" for count, one, many, rest in told if count
        ]
        return "; ".join(parts)


def _name_job(job: ForeignJob | ForeignProblem) -> str:
    if isinstance(job, ForeignProblem):
        return f"{job.place} ({job.reason})"
    return f"{job.title or job.id} ({job.schedule})"


class _Scan:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self.problems: list[ForeignProblem] = []

    def add(self, found: ForeignConversation | ForeignProblem) -> None:
        if isinstance(found, ForeignProblem):
            self.problems.append(found)
            return
        orderer = StepOrderer()
        for item in orderer.order_items(found.items, is_growing=found.is_growing):
            if isinstance(item, ForeignMessage):
                self.counts["messages"] += 1
            elif isinstance(item, ForeignCompaction):
                self.counts["compactions"] += 1
            else:
                self.events[item.kind] += 1
        self.counts["conversations"] += 1
        self.counts["branches"] += found.branch_of is not None
        self.counts["chats"] += len(found.routes)
        self.counts["missing_results"] += orderer.missing_results
        self.counts["lost_results"] += orderer.lost_results
        self.counts["waiting"] += orderer.waiting


def scan_home(
    home: ForeignHome, *, since: int, only: frozenset[str], on_messages: Callable[[int], None]
) -> FoundSystem:
    """Read everything once, and count it."""
    scan = _Scan()
    if "conversations" in only:
        for found in home.iter_conversations(since=since):
            scan.add(found)
            on_messages(scan.counts["messages"])
    counts = scan.counts
    return FoundSystem(
        description=home.description,
        conversations=counts["conversations"],
        messages=counts["messages"],
        events=scan.events.total(),
        compactions=counts["compactions"],
        branches=counts["branches"],
        chats=counts["chats"],
        missing_results=counts["missing_results"],
        lost_results=counts["lost_results"],
        waiting=counts["waiting"],
        event_kinds=scan.events.most_common(),
        problems=scan.problems,
        memory=home.list_memory() if "memory" in only else (),
        skills=home.list_skills() if "skills" in only else (),
        jobs=home.list_jobs() if "jobs" in only else (),
        people=home.list_people() if "people" in only else (),
        settings=home.list_settings() if "settings" in only else (),
        secrets=home.list_secrets() if "settings" in only else (),
    )
