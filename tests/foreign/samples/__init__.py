"""Files that the real programs of other systems wrote; each folder says which version."""

from __future__ import annotations

from pathlib import Path

from clew.foreign.registry import SYSTEMS
from clew.record import Record

_FOLDER = Path(__file__).parent


class Sample(Record):
    """A home or a file of a system."""

    system: str
    path: Path

    @property
    def names(self) -> tuple[str, str]:
        return self.system, self.path.name


def list_samples() -> list[Sample]:
    """Return all samples: what is in the folder of a system, but for what describes it."""
    return [
        Sample(system=system, path=path)
        for system in SYSTEMS
        for path in sorted(_FOLDER.joinpath(system).glob("*"))
        if not path.name.startswith(("README", "_"))
    ]
