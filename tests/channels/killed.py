"""The row "delivery marked sending" of the design's table of crashes, on any fake platform."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.acceptance.program import until
from tests.channels import serving
from tests.channels.judging import MARK, MORE, answer_to, unmarked
from tests.channels.serving import Serve
from tests.killing import processes
from tests.killing.campaign import KILLED, NotAsPlanned
from tests.killing.killer import Place
from tests.killing.records import Ready

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.channels.fakes import Fake

ONCE = ("plain",)
MARKED = ("marked",)
TWICE = ("plain", "marked")
LEFT = ("beginning", "marked")
#: The answer that people see after a kill at a place, if the platform cannot be asked.
POINTS: Mapping[str, tuple[str, ...]] = {
    "submissions.submit_input inside": ONCE,
    "submissions.submit_input after": ONCE,
    "deliveries.claim_chat_delivery after": ONCE,
    "deliveries.store_chunks_over_preview inside": ONCE,
    "deliveries.start_chunk inside": ONCE,
    # Marked as being sent, and not sent: nobody can know.
    "deliveries.start_chunk after": MARKED,
    # Sent, and not recorded.
    "deliveries.complete_chunk before": TWICE,
    "deliveries.complete_chunk inside": TWICE,
    "deliveries.complete_chunk after": ONCE,
}


#: The same where the beginning of the answer is shown while it is made.
SHOWN_POINTS: Mapping[str, tuple[str, ...]] = {
    "previews.begin_preview inside": ONCE,
    # About to be sent, and not sent: nobody can know.
    "previews.begin_preview after": MARKED,
    # Sent, and not recorded: what is left of it is followed by an answer that says so.
    "previews.set_preview_message before": LEFT,
    "previews.set_preview_message inside": LEFT,
    "previews.set_preview_message after": ONCE,
    "turns.finish_turn inside": ONCE,
    "turns.finish_turn after": ONCE,
    "deliveries.store_chunks_over_preview inside": ONCE,
    "deliveries.store_chunks_over_preview after": ONCE,
    "deliveries.start_chunk after": ONCE,
    "deliveries.complete_chunk before": ONCE,
    "deliveries.complete_chunk after": ONCE,
}


class Row:
    """Process after process, each killed at a place on the way of one message and its answer."""

    def __init__(self, fake: Fake, *, folder: Path, store_url: str, shows: bool = False) -> None:
        self._fake = fake
        self._points = SHOWN_POINTS if shows else POINTS
        settings = {**fake.settings, "stream": shows}
        self._job = Serve(
            folder=folder,
            store_url=store_url,
            channel=fake.name,
            settings=settings,
            port=fake.port,
            shows=shows,
        )
        self._users: dict[str, int] = {}
        #: Kills by place.
        self.kills = 0

    def kill_at(self, place: str) -> None:
        """
        Type a message that leads there; what the last kill left open comes to its end first.

        :raises NotAsPlanned: if the process ends otherwise
        """
        process = processes.fork(serving.main, replace(self._job, place=Place(name=place)))
        self._fake.say(place, user=self._user(place))
        code = processes.ended(process)
        if code != KILLED:
            log = self._job.folder / "output.log"
            output = log.read_text(errors="replace") if log.exists() else ""
            raise NotAsPlanned(f"{place}: exit code {code}\n{output[-4000:]}")
        self.kills += 1

    def finish(self) -> None:
        """Let a process go on to the end; told to stop, it ends what it has begun."""
        last = list(self._users)[-1]
        process = processes.fork(serving.main, self._job)
        until(lambda: any(ready.pid == process.pid for ready in self._job.log.of(Ready)))
        until(lambda: not self._fake.waiting)
        until(lambda: len(self.seen(last)) >= len(self.wanted(last)))
        process.terminate()
        if (code := processes.ended(process)) != 0:
            raise NotAsPlanned(f"exit code {code}")

    def _user(self, place: str) -> int:
        return self._users.setdefault(place, len(self._users) + 1)

    def wanted(self, place: str) -> tuple[str, ...]:
        """Return the messages that people must see for the answer."""
        wanted = ONCE if self._fake.exact else self._points[place]
        return ONCE if self._fake.tells and wanted == TWICE else wanted

    def seen(self, place: str) -> tuple[str, ...]:
        """Return the messages that people see."""
        user = self._user(place)
        texts = [one.text for one in self._fake.seen() if one.chat == user]
        whole = [text for text in texts if not text.endswith(MORE)]
        if any(unmarked(text) != answer_to(place) for text in whole):
            raise NotAsPlanned(f"{place}: {texts}")
        return tuple(_kind(text) for text in texts)


def _kind(text: str) -> str:
    if text.endswith(MORE):
        return "beginning"
    return "marked" if text.startswith(MARK) else "plain"
