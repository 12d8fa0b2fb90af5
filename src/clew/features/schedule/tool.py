"""The tool ``schedule``, as the model sees it; what it needs is imported when it is called."""

# ruff: noqa: PLC0415

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from clew.core.tool_facts import CONFINED_LEVELS, ToolFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from clew.features.schedule.settings import ScheduleSettings
    from clew.plugin.declarations import WatchSource


def make_tool(get_settings: Callable[[], ScheduleSettings]) -> Callable[..., object]:
    """Return the tool."""

    async def schedule(  # noqa: PLR0913  (the model writes them by name)
        action: Literal["add", "list", "edit", "pause", "resume", "remove"] = "add",
        task: str = "",
        at: str = "",
        every: str = "",
        cron: str = "",
        zone: str = "",
        kind: Literal["turn", "message", "command"] = "turn",
        command: str = "",
        watch: str = "",
        where: Literal["", "fresh", "own", "here"] = "",
        quiet_if: str = "",
        job: str = "",
    ) -> str:
        """
        Run a task later, once or again and again; the answer names the next times.

        Args:
            action: What to do; edit changes times or zone of a job.
            task: What you are told then; for a message its text.
            at: 2026-12-01T08:00, once.
            every: 15m, 2h, 1d.
            cron: Five fields.
            zone: Europe/Berlin; the person's if empty.
            kind: message needs no model; command asks you only if its output is new.
            command: For the kind command.
            watch: A URL, or a file of the workspace: you are asked only when it has changed.
            where: A fresh conversation each time, the job's own, or here.
            quiet_if: An answer that is not reported.
            job: Id, to edit, pause, resume or remove.
        """
        from clew.features.schedule import tool_calls

        given = {
            "task": task, "at": at, "every": every, "cron": cron, "zone": zone, "kind": kind,
            "command": command, "watch": watch, "where": where, "quiet_if": quiet_if, "job": job,
        }  # fmt: skip
        return await tool_calls.run(action, given, get_settings())

    return schedule


def make_facts(
    find_source: Callable[[str], WatchSource | None], args: Mapping[str, Any]
) -> ToolFacts | None:
    """Return the facts about a call: what it looks at is decided about when it is scheduled."""
    from clew.plugin import get_turn_context

    if watch := str(args.get("watch") or ""):
        from clew.features.schedule.making import find_kind

        source = find_source(find_kind("turn", watch=watch).value)
        return ToolFacts(internal=True) if source is None else source.facts(watch)
    context = get_turn_context()
    if not args.get("command"):
        # What runs then is decided about then.
        return ToolFacts(internal=True)
    level = None if context is None else context.sandbox_level
    confined = level in CONFINED_LEVELS
    return ToolFacts(
        command=str(args["command"]),
        sandbox=level,
        network=not confined,
        outward=not confined,
        preview=f"again and again: {args['command']}",
    )
