"""A conversation in which everything happened once, step by step; each step is a transaction."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from clew.core.approval import ApprovalReason, ApprovalState
from clew.core.compaction import CompactionState
from clew.core.delivery import DeliveryKind, DeliveryState, NewDelivery
from clew.core.double_text import DoubleText
from clew.core.effect import Effect
from clew.core.entry import EntryKind, NewEntry, Role
from clew.core.grant import GrantPattern, GrantTerm
from clew.core.ids import (
    ApprovalId,
    ClientId,
    ConversationId,
    DeliveryId,
    EntryId,
    InboxId,
    OwnerId,
    SessionId,
    TurnId,
)
from clew.core.inbox import NewInput
from clew.core.journal import CallKey, CallStatus
from clew.core.route import local_route
from clew.core.session import Head
from clew.core.session_base import EntryRange, InlineMessage
from clew.core.turn import TurnOutcome
from clew.store.transactions import (
    approvals,
    clients,
    compactions,
    conversations,
    deletion,
    deliveries,
    entries,
    idempotency,
    inbox,
    journal,
    leases,
    sessions,
    turns,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clew.core.inbox import InboxItem
    from clew.core.lease import Lease
    from clew.store.contract import Tx

OWNER = OwnerId("own_story")
Step = "Callable[[Tx], object]"


@dataclass(kw_only=True)
class Story:
    """
    Conversation ``cnv_NAME``: two turns, a compaction, a third turn.

    ==  ==============================  =====================
    1   user                            turn 1, session 1
    2   assistant, asks for ``call_1``
    3   tool, its result
    4   assistant                       delivered in two parts
    5   event
    6   user                            turn 2
    7   assistant                       not delivered yet
    8   user                            turn 3, session 2, whose base is a text and 6 to 7
    9   assistant
    10  event
    ==  ==============================  =====================
    """

    name: str
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def id(self) -> ConversationId:
        return ConversationId(f"cnv_{self.name}")

    def steps(self) -> Iterator[Callable[[Tx], object]]:
        """The whole story, in order."""
        yield from self._first_turn()
        yield from self._second_turn()
        yield self._compact
        yield from self._third_turn()
        yield self._around

    def tell(self, t: Tx) -> None:
        """The whole story in one transaction."""
        for step in self.steps():
            step(t)

    def _session_id(self, _: int) -> SessionId:
        return SessionId(f"ses_{self.name}_{next(self.ids)}")

    def _draft(
        self, name: str, role: Role | None = Role.ASSISTANT, **more: tuple[str, ...]
    ) -> NewEntry:
        return NewEntry(
            id=EntryId(f"ent_{self.name}_{name}"),
            kind=EntryKind.EVENT if role is None else EntryKind.MESSAGE,
            role=role,
            text=f"{name} of {self.name}",
            format="t/1",
            message="{}",
            **more,
        )

    def _compose(self, item: InboxItem) -> NewEntry:
        return self._draft(item.id, Role.USER)

    def accept(self, number: int) -> Callable[[Tx], object]:
        item = NewInput(
            id=InboxId(f"inb_{self.name}_{number}"),
            text="hello",
            double_text=DoubleText.QUEUE,
            event=("telegram", "bot", f"{self.name} {number}"),
        )

        def job(t: Tx) -> object:
            return inbox.accept_input(
                t,
                item,
                target=local_route(self.name),
                new_conversation=self.id,
                session_ids=self._session_id,
            )

        return job

    def begin(self, number: int) -> Callable[[Tx], object]:
        def job(t: Tx) -> object:
            return turns.begin_work(
                t,
                self.id,
                owner=OWNER,
                turn=self.turn(number),
                compose=self._compose,
                session_ids=self._session_id,
            )

        return job

    def turn(self, number: int) -> TurnId:
        return TurnId(f"trn_{self.name}_{number}")

    def _lease(self, t: Tx) -> Lease:
        return leases.acquire_lease(t, self.id, owner=OWNER).lease

    def _head(self, t: Tx) -> SessionId:
        return sessions.get_head(t, self.id).id

    def _first_turn(self) -> Iterator[Callable[[Tx], object]]:
        turn, key = self.turn(1), CallKey(turn_id=self.turn(1), step=1, call_id="call_1")
        question = ApprovalId(f"apr_{self.name}")
        yield self.accept(1)
        yield self.begin(1)
        yield lambda t: turns.store_step(
            t, self._lease(t), self._head(t), turn, [self._draft("call", calls=("call_1",))]
        )
        yield lambda t: approvals.request_approval(
            t,
            self._lease(t),
            key,
            approval=question,
            tool="send",
            args="{}",
            route=None,
            expires_in=timedelta(hours=1),
            question=ApprovalReason(why="it asks", offer=GrantPattern(tool="send")),
        )
        yield lambda t: turns.suspend_turn(t, self._lease(t), turn)
        yield lambda t: approvals.answer_approval(
            t,
            question,
            ApprovalState.APPROVED,
            answered_by="me",
            keep=GrantTerm.HOUR,
        )
        yield self.begin(1)
        yield lambda t: journal.record_intent(
            t, self._lease(t), key, position=0, tool="send", args="{}", effect=Effect.ONCE
        )
        yield lambda t: journal.record_result(
            t, self._lease(t), key, CallStatus.OK, format="t/1", result="{}"
        )
        yield lambda t: entries.append_entries(
            t,
            self._lease(t),
            self._head(t),
            [self._draft("result", Role.TOOL, answers=("call_1",))],
            turn=turn,
        )
        yield self.finish(1, "answer", delivered=True)
        yield self._deliver
        yield lambda t: entries.append_entries(
            t, self._lease(t), self._head(t), [self._draft("event", None)]
        )

    def finish(self, number: int, text: str, *, delivered: bool = False) -> Callable[[Tx], object]:
        sent = NewDelivery(
            id=DeliveryId(f"dlv_{self.name}_{number}"),
            route=local_route(self.name).key,
            kind=DeliveryKind.ANSWER,
            body="{}",
        )

        def job(t: Tx) -> object:
            return turns.finish_turn(
                t,
                self._lease(t),
                self._head(t),
                self.turn(number),
                TurnOutcome.ANSWERED,
                drafts=[self._draft(f"{text} {number}")],
                deliveries=[sent] if delivered else [],
            )

        return job

    def _deliver(self, t: Tx) -> None:
        delivery = DeliveryId(f"dlv_{self.name}_1")
        deliveries.store_chunks(t, delivery, ["one", "two"])
        deliveries.set_delivery_state(t, delivery, DeliveryState.SENDING, owner=OWNER)
        for part in range(2):
            deliveries.set_chunk_state(t, delivery, part, DeliveryState.SENDING)
            deliveries.set_chunk_state(
                t, delivery, part, DeliveryState.DELIVERED, platform_id=f"{part}"
            )
        deliveries.set_delivery_state(t, delivery, DeliveryState.DELIVERED)

    def _second_turn(self) -> Iterator[Callable[[Tx], object]]:
        yield self.accept(2)
        yield self.begin(2)
        yield self.finish(2, "answer", delivered=True)
        yield lambda t: deliveries.store_chunks(t, DeliveryId(f"dlv_{self.name}_2"), ["one", "two"])

    def _compact(self, t: Tx) -> None:
        lease = self._lease(t)
        last_seq = leases.verify_lease_for_write(t, lease)
        session = compactions.rotate_compacted(
            t,
            lease,
            operation=f"op_{self.name}",
            expected=Head(session=self._head(t), last_seq=last_seq),
            base=(InlineMessage(format="t/1", message="{}"), EntryRange(first=6, last=7)),
            reason="compression",
            state=CompactionState(),
            session_ids=self._session_id,
        )
        assert session.opened_seq == 7
        leases.release_lease(t, lease)

    def _third_turn(self) -> Iterator[Callable[[Tx], object]]:
        yield self.accept(3)
        yield self.begin(3)
        yield self.finish(3, "answer")
        yield lambda t: entries.append_entries(
            t, self._lease(t), self._head(t), [self._draft("last event", None)]
        )
        yield lambda t: leases.release_lease(t, self._lease(t))

    def _around(self, t: Tx) -> None:
        """Records that belong to it beside the log."""
        conversations.rename_conversation(t, self.id, f"Title of {self.name}")
        clients.attach_client(t, ClientId(f"cli_{self.name}"), self.id, owner=OWNER, front="tui")
        key = hashlib.sha256(self.name.encode()).digest()
        idempotency.claim_key(t, key, body=key)
        idempotency.bind_key(t, key, InboxId(f"inb_{self.name}_3"), self.id)
        idempotency.store_answer(t, key, status=200, answer="{}")
        self._attach(t, f"the file of {self.name}".encode())

    def _attach(self, t: Tx, content: bytes) -> None:
        sha256 = hashlib.sha256(content).digest()
        t.execute(
            """
            INSERT INTO blob (sha256, size, media_type, bytes, created_at)
            VALUES ($1, $2, 'text/plain', $3, $4)
            """,
            sha256,
            len(content),
            content,
            t.now,
        )
        t.execute(
            """
            INSERT INTO attachment (id, conversation_id, inbox_id, seq, sha256, name, media_type)
            VALUES ($1, $2, $3, 8, $4, 'a.txt', 'text/plain')
            """,
            f"att_{self.name}",
            self.id,
            f"inb_{self.name}_3",
            sha256,
        )

    def mark_deleted(self, t: Tx) -> None:
        self.accept(4)(t)
        deletion.mark_deleted(t, self.id)

    def delete(self, t: Tx) -> None:
        deletion.mark_deleted(t, self.id)
        while deletion.delete_slice(t, self.id):
            pass
        deletion.delete_orphan_blobs(t)
