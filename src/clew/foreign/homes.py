"""What a reader of another system offers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from clew.core.route import Route
    from clew.foreign.conversations import ForeignConversation, ForeignProblem


class ForeignMemory(Record):
    """A text that the other system remembers, in Markdown."""

    #: For people: a file name, a person, a table.
    name: str
    text: str


class ForeignSkill(Record):
    """A folder with a ``SKILL.md``."""

    name: str
    folder: Path


class ForeignJob(Record):
    """A scheduled job."""

    id: str
    title: str
    prompt: str
    #: A cron rule of five fields, ``every SECONDS``, or ``at MILLISECONDS``.
    schedule: str
    #: IANA name; empty for the machine's.
    zone: str = ""
    enabled: bool = True
    #: The chat that is told.
    route: Route | None = None


class ForeignPerson(Record):
    """A person whom the other system lets in on a platform."""

    platform: str
    id: str
    name: str = ""


class ForeignSetting(Record):
    """A setting with its counterpart here; never a secret's value."""

    #: As the other system calls it.
    origin: str
    #: Dotted name in Clew's settings; empty if there is none.
    name: str
    value: str


class ForeignSecret(Record):
    """A secret, by name and place; its value is neither read nor shown."""

    name: str
    place: str


Found: TypeAlias = "ForeignConversation | ForeignProblem"


class ForeignHome(Protocol):
    """
    One installation of another system, opened for reading only.

    It may be in use: what is read of a conversation is as it was at one moment. Each method reads
    anew. What cannot be read becomes a problem, or an event in its conversation; nothing is raised
    but ``OSError``.
    """

    #: For people, such as ``Hermes Agent, state.db of schema 6``.
    description: str

    def count_messages(self) -> int | None:
        """Return how many messages there are, if that is cheap to know."""
        ...

    def iter_conversations(self, *, since: int = 0) -> Iterator[Found]:
        """Yield each conversation changed at or after ``since`` (ms), the oldest first."""
        ...

    def list_memory(self) -> Sequence[ForeignMemory]: ...

    def list_skills(self) -> Sequence[ForeignSkill]: ...

    def list_jobs(self) -> Sequence[ForeignJob | ForeignProblem]: ...

    def list_people(self) -> Sequence[ForeignPerson]: ...

    def list_settings(self) -> Sequence[ForeignSetting]: ...

    def list_secrets(self) -> Sequence[ForeignSecret]: ...


class PlainHome:
    """A home that has conversations only; the other methods are for its heirs to replace."""

    def count_messages(self) -> int | None:
        return None

    def list_memory(self) -> Sequence[ForeignMemory]:
        return ()

    def list_skills(self) -> Sequence[ForeignSkill]:
        return ()

    def list_jobs(self) -> Sequence[ForeignJob | ForeignProblem]:
        return ()

    def list_people(self) -> Sequence[ForeignPerson]:
        return ()

    def list_settings(self) -> Sequence[ForeignSetting]:
        return ()

    def list_secrets(self) -> Sequence[ForeignSecret]:
        return ()


class ForeignReader(Protocol):
    """Module of a system in ``clew.foreign.readers``."""

    def find_home(self, home: Path) -> Path | None:
        """Return the usual place of its data under a home folder (or where its variables say)."""
        ...

    def open_home(self, path: Path) -> ForeignHome:
        """
        Open an installation: its folder, or one of its files.

        :raises UsageError: if there is nothing of this system; says what was looked for
        """
        ...
