"""The hook ``pre_llm_call``: what a plugin adds to the message that begins a turn."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

import structlog

from clew.core.payload import as_object
from clew.features.hermes import facts
from clew.features.hermes.hooks import run_callbacks
from clew.features.hermes.worker import BriefCalls
from clew.plugin import Note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.features.hermes.loaded import LoadedPlugin
    from clew.plugin import Registry, TurnContext
    from clew.store.contract import Tx

log = structlog.get_logger(__name__)

HOOK: Final = "pre_llm_call"
#: Turns whose answers are remembered: the transaction that stores a message may run again.
_MAX_TURNS: Final = 200


def declare_notes(registry: Registry, plugin: LoadedPlugin) -> None:
    """Declare the note of a plugin, if it has callbacks that may add one."""
    if HOOK in plugin.hooks:
        registry.add_context_note(f"hermes {plugin.name}", TurnNotes(plugin).make_notes)


def read_message(t: Tx, context: TurnContext) -> str:
    """Return the texts that begin or join the turn."""
    found = t.fetch_all(
        """
        SELECT text FROM inbox
        WHERE conversation_id = $1 AND kind = 'message' AND outcome IS NULL ORDER BY n LIMIT 20
        """,
        context.conversation,
    )
    return "\n".join(text for (text,) in found if text)


def read_history(t: Tx, context: TurnContext) -> list[dict[str, Any]]:
    """Return the newest texts of the session before the turn."""
    found = t.fetch_all(
        """
        SELECT role, text FROM entry
        WHERE conversation_id = $1 AND session_id = $2 AND role IN ('user', 'assistant')
              AND (turn_id IS NULL OR turn_id <> $3)
        ORDER BY seq DESC LIMIT 40
        """,
        context.conversation,
        context.session,
        context.turn,
    )
    return [{"role": role, "content": text} for role, text in reversed(found) if text]


class TurnNotes:
    """The notes of one plugin: once per turn, and the same ones if that is asked again."""

    def __init__(self, plugin: LoadedPlugin) -> None:
        self._plugin, self._calls = plugin, BriefCalls(plugin.worker)
        self._made: OrderedDict[str, tuple[str, list[Note]]] = OrderedDict()

    def make_notes(self, t: Tx, context: TurnContext) -> list[Note]:
        """Return what the callbacks add to the message; nothing if they take too long."""
        said = read_message(t, context)
        known = self._made.get(context.turn)
        if known is not None:
            # A message that joins the turn is no turn of its own.
            return known[1] if known[0] == said else []
        arguments = _make_arguments(t, context, said)
        try:
            answers = self._calls.call(
                lambda: run_callbacks(self._plugin, self._plugin.hooks[HOOK], arguments)
            )
        except TimeoutError:
            log.warning("hermes_note_late", plugin=self._plugin.name, seconds=BriefCalls.SECONDS)
            answers = []
        return self._keep(context.turn, said, [Note(text=text) for text in _list_texts(answers)])

    def _keep(self, turn: str, said: str, notes: list[Note]) -> list[Note]:
        self._made[turn] = said, notes
        if len(self._made) > _MAX_TURNS:
            self._made.popitem(last=False)
        return notes


def _make_arguments(t: Tx, context: TurnContext, said: str) -> dict[str, Any]:
    history = read_history(t, context)
    return {
        **facts.make_ids(context.session, context.turn),
        "user_message": said,
        "conversation_history": history,
        "is_first_turn": not history,
        "model": facts.split_model(context.services.settings.model.name)[1],
        "platform": context.platform,
        "sender_id": context.people[0] if context.people else "",
    }


def _list_texts(answers: Sequence[Any]) -> list[str]:
    texts = (one if isinstance(one, str) else as_object(one).get("context") for one in answers)
    return [text for text in texts if isinstance(text, str) and text.strip()]
