"""Home of Codex."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from clew.core.payload import as_text
from clew.foreign.conversations import ForeignProblem
from clew.foreign.folders import find_skills, list_secret_keys, read_json, read_memory, read_text
from clew.foreign.homes import ForeignSetting, PlainHome
from clew.foreign.jsonl import iter_lines, list_changed
from clew.foreign.readers.codex.sessions import read_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from clew.foreign.homes import ForeignMemory, ForeignSecret, ForeignSkill, Found


class CodexHome(PlainHome):
    """The folder of Codex, or some of its sessions."""

    def __init__(self, folder: Path, files: Sequence[Path] = ()) -> None:
        self._folder, self._files = folder, files
        self.description = f"Codex, sessions in {folder}"

    def iter_conversations(self, *, since: int = 0) -> Iterator[Found]:
        titles = self._read_titles()
        files = self._files or [
            *self._folder.glob("sessions/**/*.jsonl"),
            *self._folder.glob("archived_sessions/**/*.jsonl"),
        ]
        for file in list_changed(files, since):
            try:
                found = read_session(file, titles)
            except OSError as error:
                yield ForeignProblem(place=str(file), reason=str(error))
            else:
                if found is not None:
                    yield found

    def _read_titles(self) -> dict[str, str]:
        try:
            lines = [line.data for line in iter_lines(self._folder / "session_index.jsonl")]
        except OSError:
            return {}
        return {as_text(one.get("id")): as_text(one.get("thread_name")) for one in lines}

    def _read_config(self) -> dict[str, Any]:
        try:
            return tomllib.loads(read_text(self._folder / "config.toml"))
        except (tomllib.TOMLDecodeError, RecursionError):
            return {}

    def list_memory(self) -> Sequence[ForeignMemory]:
        return read_memory(self._folder, "AGENTS.md", "AGENTS.override.md", "memories/MEMORY.md")

    def list_skills(self) -> Sequence[ForeignSkill]:
        return find_skills(self._folder / "skills")

    def list_settings(self) -> Sequence[ForeignSetting]:
        config = self._read_config()
        model = as_text(config.get("model"))
        provider = as_text(config.get("model_provider")) or "openai"
        if not model:
            return ()
        known = "model.name" if provider == "openai" else ""
        return [ForeignSetting(origin="model", name=known, value=f"{provider}:{model}")]

    def list_secrets(self) -> Sequence[ForeignSecret]:
        kept = list_secret_keys(read_json(self._folder / "auth.json"), "auth.json")
        return [*kept, *list_secret_keys(self._read_config(), "config.toml")]
