"""The history that a branch has copied, as the terminal UI shows it before the branch's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.tui.original_history import read_original
from clew.tui.state import reducer
from clew.tui.state.view import ViewState
from clew.wire import methods
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.models import EntryShape, OriginShape, SpanShape
from tests.unit.test_tui_view import CONVERSATION, STATE, after, said, texts

if TYPE_CHECKING:
    from clew.wire.methods import RpcMethod

ORIGIN = OriginShape(id="cnv_0", seq=4)
BRANCH = CONVERSATION.model_copy(update={"origin": ORIGIN})
REWOUND = STATE.model_copy(update={"taken_back": [SpanShape(first=2, last=2)]})


class Original:
    """A server with an original of ten entries, of which the second was rewound."""

    def __init__(self, *, is_deleted: bool = False) -> None:
        self._is_deleted = is_deleted

    async def call(self, method: RpcMethod[Any, Any], params: Any) -> Any:
        assert params.conversation == ORIGIN.id
        if self._is_deleted:
            raise CallFailed.from_code(ErrorCode.NOT_FOUND, "gone")
        if method is methods.STATUS:
            return methods.STATUS.result.model_construct(state=REWOUND)
        last = params.before - 1
        entries = [said(seq, str(seq)) for seq in range(max(1, last - params.limit + 1), last + 1)]
        items = [
            EntryShape.model_validate(one.model_dump(exclude={"conversation", "type"}))
            for one in entries
        ]
        return methods.ENTRIES.result.model_construct(items=items, next=None)


async def load(view: ViewState, server: Original, count: int) -> ViewState:
    found = await read_original(server, ORIGIN, first=view.first, count=count)
    return reducer.prepend_entries(
        view, BRANCH.id, found.entries, before=view.first, state=found.state
    )


async def test_the_copied_messages_come_before_those_of_the_branch_page_by_page() -> None:
    view = reducer.open_conversation(ViewState(), BRANCH, STATE)
    assert (view.first, view.start) == (1, -3)
    view = await load(view, Original(), 3)
    assert (texts(view), view.first) == (["2", "3", "4"], -2)
    view = await load(view, Original(), 3)
    assert (texts(view), view.first) == (["1", "2", "3", "4"], view.start)
    view = after(view, said(1, "own"))
    view = reducer.open_conversation(view, BRANCH, STATE)
    assert [(block.text, block.seq, block.taken) for block in view.blocks] == [
        ("1", -3, False),
        ("2", -2, True),
        ("3", -1, False),
        ("4", 0, False),
        ("own", 1, False),
    ]


async def test_a_branch_of_a_deleted_original_begins_with_its_own_messages() -> None:
    view = reducer.open_conversation(ViewState(), BRANCH, STATE)
    view = await load(view, Original(is_deleted=True), 3)
    assert (texts(view), view.first) == ([], view.start)
