"""
What is said on a chat platform: events, as channels tell them and the rest of Clew takes them.

A ``Route`` is the address: platform, kind of chat, chat, thread.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from clew.core.quotation import Quoted, person, unsupported, written

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.route import Route

#: The kinds of chats that a route names.
DM = "dm"
GROUP = "group"
CHANNEL = "channel"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sender:
    """A person, by the id that the platform never changes."""

    id: str
    #: As they call themselves: for people and the model, never to decide who they are.
    name: str = ""
    #: ``False`` where a chat or a channel writes under its own name, and nobody knows who did.
    person: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    """Something that came with a message, still on the platform."""

    #: What the channel fetches it by, also after a restart.
    id: str
    name: str
    media_type: str = "application/octet-stream"
    #: Bytes, where the platform says.
    size: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Heard:
    """A message."""

    #: The same each time that the platform tells of it, and of nothing else.
    event: str
    route: Route
    sender: Sender
    #: The platform's id of the message.
    message: str
    #: The sender's own words, and nothing else: commands and consent are read here alone.
    text: str
    #: What else they sent, each named on a line: ``[location 52.5, 13.4]``.
    lines: tuple[str, ...] = ()
    #: What came with it that others wrote, or the sender at another time.
    quoted: tuple[Quoted, ...] = ()
    #: Types of content that the channel does not know.
    unsupported: tuple[str, ...] = ()
    files: tuple[File, ...] = ()
    #: Whether it is meant for the agent: in a direct message always, else by a mention, a reply to
    #: the agent, or a command for it.
    addressed: bool = True
    sent_at: datetime

    @property
    def may_command(self) -> bool:
        """Whether its own words may be a command: not where nobody knows whose they are."""
        return self.sender.person and not self.files

    @property
    def body(self) -> str:
        """What the agent reads of it."""
        lines = (*self.lines, *map(unsupported, self.unsupported))
        return written(self.text, lines, self.quoted)


@dataclass(frozen=True, kw_only=True, slots=True)
class Edited(Heard):
    """A message as its sender changed it; ``event`` is that of the change."""

    #: The event of the message when it was first heard.
    original: str

    @classmethod
    def of(cls, heard: Heard, *, at: object) -> Edited:
        """A message as heard after its change; ``at`` tells that from other changes."""
        told: dict[str, Any] = {one.name: getattr(heard, one.name) for one in fields(heard)}
        told |= {"event": f"{heard.event}:{at}", "original": heard.event}
        return cls(**told)

    @property
    def as_new(self) -> Heard:
        """The message as if it had been heard in this form first."""
        told: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(Heard)}
        told["event"] = self.original
        return Heard(**told)


@dataclass(frozen=True, kw_only=True, slots=True)
class Deleted:
    """A message that its sender took away."""

    event: str
    route: Route
    #: The event of the message when it was heard.
    original: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Pressed:
    """A button under a message of the agent."""

    event: str
    route: Route
    sender: Sender
    #: The message that the button belongs to.
    message: str
    #: As it was given with the button.
    data: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
    """A chat has another id from now on."""

    event: str
    route: Route
    to: Route


Event = Heard | Edited | Deleted | Pressed | Moved


@dataclass(frozen=True, kw_only=True, slots=True)
class Ignored:
    """Something that a platform told and that says nothing to the agent."""

    #: What it was, in a few words that are the same for all of its kind: "service: pinned_message".
    kind: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Button:
    """Something to press under a message."""

    label: str
    #: What comes back with the press: at most 64 bytes.
    data: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Outgoing:
    """What is to be said, before it takes a platform's form."""

    text: str
    #: Whether the text is Markdown; else it is shown as it is.
    markup: bool = True
    #: Under the last message of it.
    buttons: tuple[Button, ...] = ()
    #: The platform's id of the message that it answers, shown so where the platform can.
    reply_to: str | None = None
    #: Only to take the place in which the answer of this turn was shown while it was made; where
    #: none was shown, nothing is said.
    instead_of: str | None = None


def dump(message: Outgoing) -> str:
    """A message as it is stored until it is delivered."""
    return json.dumps(asdict(message), ensure_ascii=False)


def load(body: str) -> Outgoing:
    """The message that ``dump`` wrote."""
    told = json.loads(body)
    buttons = tuple(Button(**button) for button in told.pop("buttons"))
    return Outgoing(buttons=buttons, **told)


#: All that some reader takes for the end of a line.
_BREAKS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
#: The beginning of a line that looks as if another person began to speak there.
_IMITATION = re.compile(
    rf"(?:^|(?<=[{_BREAKS}]))(?!> )(?=[^{_BREAKS}]{{1,60}} \([^()\s]{{1,64}}\): )"
)


def spoken(text: str, sender: Sender, route: Route) -> str:
    """What the agent reads: where several people share a conversation, who says it stands first."""
    if route.kind == DM or route.user is not None or not text:
        return text
    # Nothing of a name or a text may look as if somebody else had said it.
    name = person(sender.name, longest=40) or "somebody"
    return f"{name} ({sender.id}): {_IMITATION.sub('  ', text)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """A file that the agent is shown, right behind the line that names it."""

    line: str
    #: Of its content, in hex.
    sha256: str
    name: str
    #: As what it is shown, as ``clew.core.showing`` has it.
    kind: str
    size: int


def with_files(text: str, payload: str) -> list[str | Shown]:
    """What the agent reads of a message: its text, and a line for each file that came with it."""
    if '"files"' not in payload:
        return [text]
    files: list[dict[str, Any]] = json.loads(payload).get("files") or []
    said = [text] if text else []
    return [*said, *(_shown(file) for file in files)]


def without_files(text: str, payload: str) -> str:
    """What somebody wrote, of what the agent read: as ``with_files`` was given it."""
    lines = [
        item if isinstance(item, str) else item.line
        for item in (with_files("", payload) if '"files"' in payload else ())
    ]
    return text.removesuffix("\n".join(lines)).removesuffix("\n") if lines else text


def files_in(payload: str) -> list[File]:
    """The files of a message that were not fetched yet."""
    told: list[dict[str, Any]] = json.loads(payload).get("files") or []
    return [
        File(
            id=file["file"],
            name=file["name"],
            media_type=file["media_type"],
            size=file["size"],
        )
        for file in told
        if "file" in file
    ]


def _shown(file: dict[str, Any]) -> str | Shown:
    if not file.get("shown_as"):
        return _line(file)
    return Shown(
        line=_line(file),
        sha256=file["sha256"],
        name=file["name"],
        kind=file["shown_as"],
        size=file["size"],
    )


def _line(file: dict[str, Any]) -> str:
    what = f"{' '.join(file['name'].split())}, {file['media_type']}"
    if attachment := file.get("attachment"):
        # What was stored before files were shown does not say.
        named = ", told by name only" if file.get("shown_as", "") is None else ""
        return f"[file {attachment}: {what}, {file['size']:,} bytes{named}]"
    return f"[file {what}: {file.get('missing') or 'it could not be fetched in time'}]"
