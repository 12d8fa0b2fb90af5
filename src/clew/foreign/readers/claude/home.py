"""Home of Claude Code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.payload import as_object, as_text
from clew.foreign.conversations import ForeignProblem
from clew.foreign.folders import find_skills, list_secret_keys, read_json, read_memory
from clew.foreign.homes import ForeignSetting, PlainHome
from clew.foreign.jsonl import list_changed
from clew.foreign.readers.claude.forks import ForkSources
from clew.foreign.readers.claude.sessions import read_sessions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from clew.foreign.homes import ForeignMemory, ForeignSecret, ForeignSkill, Found


class ClaudeHome(PlainHome):
    """The folder of Claude Code, or some of its sessions."""

    def __init__(self, folder: Path, files: Sequence[Path] = ()) -> None:
        self._folder, self._files = folder, files
        self.description = f"Claude Code, sessions in {folder}"

    def iter_conversations(self, *, since: int = 0) -> Iterator[Found]:
        files = self._files or [
            *self._folder.glob("projects/*/*.jsonl"),
            *self._folder.glob("projects/*/*/subagents/**/*.jsonl"),
        ]
        sources = ForkSources(files)
        for file in list_changed(files, since):
            parts = file.parts
            is_sub = "subagents" in parts
            parent = parts[parts.index("subagents") - 1] if is_sub else sources.find(file)
            try:
                yield from read_sessions(file, parent=parent, is_sub=is_sub)
            except OSError as error:
                yield ForeignProblem(place=str(file), reason=str(error))

    def list_memory(self) -> Sequence[ForeignMemory]:
        return read_memory(self._folder, "CLAUDE.md", "CLAUDE.local.md", "AGENTS.md")

    def list_skills(self) -> Sequence[ForeignSkill]:
        return find_skills(self._folder / "skills")

    def list_settings(self) -> Sequence[ForeignSetting]:
        model = as_text(as_object(read_json(self._folder / "settings.json")).get("model"))
        value = f"anthropic:{model}" if model.startswith("claude") else model
        known = "model.name" if model.startswith("claude") else ""
        return [ForeignSetting(origin="model", name=known, value=value)] if model else ()

    def list_secrets(self) -> Sequence[ForeignSecret]:
        found = list_secret_keys(read_json(self._folder / "settings.json"), "settings.json")
        kept = list_secret_keys(read_json(self._folder / ".credentials.json"), ".credentials.json")
        return [*found, *kept]
