"""The services of a process that its engine and its turns use."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from clew.core.conversation import UNDELETE_FOR
from clew.core.ids import new_session_id
from clew.core.reset_policy import ResetPolicy
from clew.engine.call_narrowings import CallNarrowings
from clew.engine.context_notes import ContextNotes
from clew.engine.file_readers import FileReaders
from clew.engine.named_agents import NO_AGENTS, NamedAgents
from clew.engine.turn_concurrency import DEFAULT_LIMIT
from clew.engine.turn_observers import TurnObservers
from clew.engine.turn_tracing import TurnTracing
from clew.plugin.registry import Features
from clew.record import Record
from clew.store.transactions import leases, turns

if TYPE_CHECKING:
    from datetime import timedelta

    from clew.agent.failover import ModelChain
    from clew.agent.loop import AgentLoop
    from clew.core.completion import UnattendedLimits
    from clew.core.ids import IdGenerator, SessionIdFactory
    from clew.engine.after_turn import AfterTurnQueue
    from clew.engine.compaction import CompactionService
    from clew.engine.context_cache import ContextCache
    from clew.engine.event_bus import EventBus
    from clew.engine.hook_dispatch import HookDispatcher
    from clew.engine.model_overrides import ModelOverrides
    from clew.engine.titles import TitleService
    from clew.plugin.context import FeatureContext
    from clew.store.contract import Store


class EngineServices(Record):
    """The services that turns use; the same for all turns of a process."""

    store: Store
    event_bus: EventBus
    ids: IdGenerator
    loop: AgentLoop
    models: ModelChain
    compaction: CompactionService
    context_cache: ContextCache
    hooks: HookDispatcher
    titles: TitleService
    after_turn: AfterTurnQueue
    model_overrides: ModelOverrides
    reset_policy: ResetPolicy = field(default_factory=ResetPolicy)
    #: Time during which a deleted conversation can be restored.
    undelete_for: timedelta = UNDELETE_FOR
    session_ids: SessionIdFactory = new_session_id
    lease_duration: timedelta = leases.LEASE_DURATION
    turns_at_once: int = DEFAULT_LIMIT
    unattended_limits: UnattendedLimits = turns.UNLIMITED
    features: Features = field(default_factory=Features)
    #: The services that features are given.
    feature_context: FeatureContext
    agents: NamedAgents = NO_AGENTS
    notes: ContextNotes = field(default_factory=ContextNotes)
    observers: TurnObservers = field(default_factory=TurnObservers)
    narrowings: CallNarrowings = field(default_factory=CallNarrowings)
    file_readers: FileReaders = field(default_factory=FileReaders)
    tracing: TurnTracing = field(default_factory=TurnTracing)
