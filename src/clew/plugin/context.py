"""The context that the code of a feature is given when it runs."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from clew.plugin.waker import EngineWaker
from clew.record import Record

if TYPE_CHECKING:
    from clew.config.settings import Settings
    from clew.core.agent_profile import AgentProfile
    from clew.core.ids import ConversationId, IdGenerator, TurnId
    from clew.core.route import Route
    from clew.core.side_answer import SideAnswer
    from clew.store.contract import Store, Tx


class FindProfile(Protocol):
    """A look at what the settings say of a conversation's agent."""

    def __call__(
        self, t: Tx, conversation: ConversationId | None, route: Route | None = None
    ) -> AgentProfile | None:
        """Return its profile; ``None`` if it is as all others."""
        ...


def find_no_profile(
    t: Tx,
    conversation: ConversationId | None,
    route: Route | None = None,
) -> AgentProfile | None:
    """Return ``None``: where there are no agents with names."""
    return None


class AskModel(Protocol):
    """A request to a model beside the conversation: no tools, nothing stored."""

    async def __call__(
        self,
        model: str,
        prompt: str,
        *,
        setting: str,
        max_tokens: int,
        seconds: float,
        picture: bytes | None = None,
    ) -> SideAnswer:
        """
        Return the answer to one prompt, which may be about a picture.

        ``setting`` is the one that names the model, for messages.

        :raises Exception: whatever the provider raises
        """
        ...


class FeatureContext(Record):
    """The services of a running application."""

    settings: Settings
    store: Store
    ids: IdGenerator
    ask_model: AskModel
    #: Returns the profile of a conversation's agent, or of the agent that the route of one names
    #: which does not exist yet.
    find_profile: FindProfile = find_no_profile
    waker: EngineWaker = field(default_factory=EngineWaker)
    #: Bytes of the largest file that each platform takes, of those that this process talks to.
    largest_files: dict[str, int] = field(default_factory=dict[str, int])

    def work_on(self, conversation: ConversationId) -> None:
        """Have this process work on a conversation, also if it leaves others' work alone."""
        self.waker.wake(conversation)

    async def reload(self, conversation: ConversationId) -> int:
        """
        Have the next request of a conversation be made with its tools and instructions of then.

        :return: the tokens that its provider then reads without its cache; 0 if not known
        :raises NotFound: if the conversation does not exist
        """
        # Every command loads the features, and few reload.
        from clew.store.transactions.reloads import queue_reload  # noqa: PLC0415

        id = self.ids.new_inbox_id()
        tokens = await self.store.write(queue_reload, conversation, id=id)
        self.work_on(conversation)
        return tokens

    async def wake(
        self,
        conversation: ConversationId,
        *,
        kind: str,
        id: str,
        text: str,
        turn: TurnId | None = None,
        untrusted: bool = False,
    ) -> bool:
        """
        Tell the model of a conversation that something has ended; ``False`` if it is gone.

        ``kind`` and ``id`` say what: ``process``, ``prc_…``. The text joins the running turn, or
        begins one; it is never taken for a message of a person. The same end is told once.
        ``turn`` is the one that began what has ended. Text of which strangers may have written a
        part is ``untrusted``: from then on, calls there that reach outside ask.
        """
        # Every command loads the features, and few wake anybody.
        from clew.core.completion import Cause, NewCompletion, make_completion_id  # noqa: PLC0415
        from clew.store.transactions.completions import accept_completion  # noqa: PLC0415

        return await self.store.write(
            accept_completion,
            NewCompletion(
                id=make_completion_id(id),
                conversation=conversation,
                text=text,
                cause=Cause(kind=kind, id=id),
                turn=turn,
                untrusted=untrusted,
            ),
        )
